package run

import "builder/internal/diag"

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
