package run

import (
	"fmt"
	"strings"

	"builder/internal/base/diag"
)

// An EngineError is a failure of the engine and not of the build: the engine was
// killed, is unreachable, has a full disk or damaged data. The same build may succeed
// on another engine, or on this one after a repair.
type EngineError struct{ Err error }

// Error returns the message of Err.
func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns Err. If Err has no class, Unwrap adds the class [diag.NoEngine] and a
// hint.
func (e *EngineError) Unwrap() error {
	if diag.Worst(e.Err) != diag.OK {
		return e.Err
	}
	if strings.Contains(e.Err.Error(), "failed to download checksums") { // by the SDK (v0.19.10)
		return diag.Errorf(diag.NoEngine, "%w", e.Err).
			WithHint("builder found no Go to compile the engine's client, and the SDK could not download one: install Go 1.25 or newer and put it into PATH")
	}
	return diag.Errorf(diag.NoEngine, "%w", e.Err).
		WithHint("check that the engine still runs, and read its log: `builder engine status` prints the path for the native engine. If it cannot read files of its own cache, `builder store gc` empties the cache. Or use another engine with --engine URL. A build that uses all memory kills the engine too: lower --jobs")
}

// An inputError is the reason why a cell cannot start.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// cellError prefixes each of its errors with the cell's ID.
type cellError struct {
	id  string
	err error
}

func (e *cellError) Error() string { return "building " + e.id + ": " + e.err.Error() }

// Unwrap returns the errors, each with the cell's ID.
func (e *cellError) Unwrap() []error {
	var parts []error
	for _, p := range diag.Split(e.err) {
		parts = append(parts, fmt.Errorf("building %s: %w", e.id, p))
	}
	return parts
}
