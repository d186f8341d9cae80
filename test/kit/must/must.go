// Package must ends a test at an error or a fact that makes the rest of it pointless.
package must

import "errors"

// A Test is a test of package testing or of a library for properties.
type Test interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Succeed ends the test if one of the errors is not nil.
func Succeed(t Test, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Hold ends the test with a text unless the condition holds.
func Hold(t Test, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}
