// Package check reports what does not hold in a test, and lets the test go on.
package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Same fails the test if got differs from want, and shows how.
func Same(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// That fails the test with a text unless the condition holds.
func That(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Fails fails the test unless there is an error that says a text. about names the case.
func Fails(t testing.TB, err error, says string, about ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v: the error is %v, and it must say %q", about, err, says)
	}
}
