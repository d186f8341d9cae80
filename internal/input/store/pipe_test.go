package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/must"
)

// Other users of a home can put pipes into the store. No operation blocks on one.
func TestPipesInAStoreKeepNobodyWaiting(t *testing.T) {
	s := must.Get(Open(t.TempDir()))(t)
	digest := strings.Repeat("ab", 32)
	pipes := []string{s.Documents().path("key"), slotOf(s.dir, digest).record, slotOf(s.dir, digest).blob, filepath.Join(s.dir, partials, digest), filepath.Join(s.dir, users)}
	for _, path := range pipes {
		_ = os.Remove(path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600))
	}
	for what, ask := range map[string]func(){
		"a result":  func() { s.Documents().Get("key") },
		"a note":    func() { slotOf(s.dir, digest).checked() },
		"a digest":  func() { _, _ = Of(slotOf(s.dir, digest).blob) },
		"a partial": func() { _, _ = openPartial(filepath.Join(s.dir, partials, digest)) },
		"a small":   func() { _, _ = Small(context.Background(), Place(slotOf(s.dir, digest).blob), 10) },
		"a lock":    func() { _, _ = tryLock(slotOf(s.dir, digest).blob) },
		"the users": func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if free, err := s.Hold(ctx, nil); err == nil {
				free()
			}
		},
	} {
		done := make(chan struct{})
		go func() { ask(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits", what)
		}
	}
}
