// Package check compares values in tests.
package check

import (
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
