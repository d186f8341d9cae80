package progress

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// late is a cancelled context that has not called its functions yet.
type late struct{ context.Context }

// Value hides the inner context, which context.AfterFunc would otherwise use.
func (late) Value(any) any { return nil }

func (late) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

// A command that ends together with its context still answers the interrupt.
func TestAnInterruptIsAnsweredByACommandThatEndsAtOnce(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out strings.Builder
		shown := must.Get(Begin(late{ctx}, &out, Plain, false))(t)
		if interrupted {
			cancel()
		}
		shown.Close()
		check.Same(t, fmt.Sprintf("stopping is told in %q", out.String()), interrupted, strings.Contains(out.String(), stopping))
	}
}
