package pipelines

import (
	"errors"
	"testing"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// What a step leaves or prints is never a fault of the engine: the build would start
// again, and fail again.
func TestStepsCannotBlameTheEngine(t *testing.T) {
	const snapshot = "/home/engine/state/worker/snapshots/snapshots/1805/fs/build/dist/"
	for _, text := range []string{
		"failed to commit k7: failed to compute snapshot usage: lstat " + snapshot + "dddd: file name too long",
		"stat " + snapshot + "loop: too many levels of symbolic links",
		"failed to resolve path: too many links",
		"file size 134250496 exceeds limit 134217728",
	} {
		err := (&session{}).engines(t.Context(), errors.New(text))
		check.That(t, diag.CodeOf(err) == diag.Build, "%s: class %v", text, diag.CodeOf(err))
	}
	for text, want := range map[string]diag.Code{
		"lstat " + snapshot + "..: no such file or directory": diag.Build,
		"failed to mount: not a directory":                    diag.Build,
		"connection refused":                                  diag.OK,
	} {
		err := leftNone(errors.New(text))
		check.That(t, diag.Worst(err) == want, "%s: class %v", text, diag.Worst(err))
	}
}

// An exec that prints more than the engine gives back has succeeded.
func TestOutputThatIsTooLong(t *testing.T) {
	engine := &modes{}
	client := must.Get(dagger.Connect(t.Context(), dagger.WithConn(engine)))(t)
	for answer, want := range map[string]struct {
		printed string
		whole   bool
		fails   bool
	}{
		`{"data":{"container":{"stdout":"said"}}}`:                               {"said", true, false},
		`{"errors":[{"message":"file size 134250496 exceeds limit 134217728"}]}`: {"", false, false},
		`{"errors":[{"message":"connection refused"}]}`:                          {"", true, true},
	} {
		engine.answer = answer
		printed, whole, err := outputOf(t.Context(), client.Container())
		check.That(t, printed == want.printed && whole == want.whole && (err != nil) == want.fails,
			"%s: %q, whole %v, %v", answer, printed, whole, err)
	}
}
