package run

import (
	"fmt"

	"builder/internal/base/diag"
)

// An EngineError is a fault of the engine, not of what it builds: it was killed,
// it cannot be reached, its disk is full, or what it keeps is damaged. The same
// build may succeed at another engine, or at this one when it is in order again.
type EngineError struct{ Err error }

// Error says what the engine did.
func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns the fault with what to do. Its class is [diag.NoEngine] where it
// has none.
func (e *EngineError) Unwrap() error {
	if diag.Worst(e.Err) != diag.OK {
		return e.Err
	}
	return diag.Errorf(diag.NoEngine, "%w", e.Err).
		WithHint("`builder engine status` says where the log of the native engine is, --engine URL names another; a build that takes all memory kills the engine too (--memory, --jobs)")
}

// An inputError is why a cell cannot be begun.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// cellError names the cell in front of each of its faults.
type cellError struct {
	id  string
	err error
}

func (e *cellError) Error() string { return "building " + e.id + ": " + e.err.Error() }

// Unwrap returns the faults, each with the cell's name.
func (e *cellError) Unwrap() []error {
	var parts []error
	for _, p := range diag.Split(e.err) {
		parts = append(parts, fmt.Errorf("building %s: %w", e.id, p))
	}
	return parts
}
