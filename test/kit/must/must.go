// Package must ends a test at an error or a fact that makes the rest of it pointless.
package must

import (
	"errors"
	"os"
	"path/filepath"
)

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

// Get returns the value of a call that must succeed: must.Get(os.ReadFile(name))(t). The
// test ends if there is an error.
func Get[T any](value T, err error) func(Test) T {
	return func(t Test) T {
		t.Helper()
		Succeed(t, err)
		return value
	}
}

// File writes a file into a new directory of the test and returns its path.
func File[T string | []byte](t interface {
	Test
	TempDir() string
}, name string, content T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
