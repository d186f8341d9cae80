package app_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/release"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The statements of a second key join those of the first: users who trust only one of the
// keys can no longer verify the wheel.
func TestPublishNotesAnotherKey(t *testing.T) {
	s, of := newSession(t, &builds{holds: "tiny"})
	var notes []string
	s.Keys.Note = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	to := "file:" + filepath.Join(t.TempDir(), "wheels")
	for _, want := range []int{0, 1, 0} { // the third time publishes the second cell again
		if want > 0 || s.Keys.Key == "" {
			s.Keys.Key = filepath.Join(t.TempDir(), "key.pem")
			key, err := signing.NewKey()
			err = errors.Join(err, key.Write(s.Keys.Key))
			must.Succeed(t, err)
		}
		out := outOf(t, s, of)
		notes = nil
		r, err := release.Publish(t.Context(), releaseOf(s), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: to, Channel: attest.Candidate})
		must.Succeed(t, err)
		check.Same(t, fmt.Sprintf("%+v", r.Published), want, strings.Count(strings.Join(notes, "\n"), "its users must trust both keys"))
	}
}
