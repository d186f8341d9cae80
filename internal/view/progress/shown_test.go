package progress

import (
	"context"
	"strings"
	"testing"
)

// late is a context that, once canceled, has not yet called its functions.
type late struct{ context.Context }

// Value hides the context inside, which would be asked in place of AfterFunc.
func (late) Value(any) any { return nil }

func (late) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

// A command that ends as soon as its context does still answers the interrupt.
func TestAnInterruptIsAnsweredByACommandThatEndsAtOnce(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out strings.Builder
		shown, err := Begin(late{ctx}, &out, Plain, false)
		if err != nil {
			t.Fatal(err)
		}
		if interrupted {
			cancel()
		}
		shown.Close()
		if got := strings.Contains(out.String(), stopping); got != interrupted {
			t.Errorf("interrupted %v, answered %v: %q", interrupted, got, out.String())
		}
	}
}
