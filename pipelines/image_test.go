package pipelines

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// TestBootstrapOnce: of several runs that need the same first layer, one writes it, and
// no other replaces the file that an engine may be reading.
func TestBootstrapOnce(t *testing.T) {
	scratch := t.TempDir()
	files := make([]uint64, 32)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range files {
		wg.Go(func() {
			<-begin
			e := &Engine{Scratch: scratch}
			path, err := e.bootstrap(t.Context(), lock.ImagePin{})
			if err != nil {
				t.Error(err)
				return
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Error(err)
				return
			}
			files[i] = info.Sys().(*syscall.Stat_t).Ino
		})
	}
	close(begin)
	wg.Wait()
	for _, ino := range files {
		must.Hold(t, ino == files[0], "the file was replaced: inodes %v", files)
	}
}

// TestIntact: an archive counts as checked only while it is the same file.
func TestIntact(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "bootstrap.tar")
	write := func(path, text string) {
		t.Helper()
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o644))
	}
	digest := sha256.Sum256([]byte("layer"))
	write(archive+sumEnd, hex.EncodeToString(digest[:]))
	e := &Engine{}
	for i, step := range []struct {
		do   func()
		want bool
	}{
		{func() {}, false},
		{func() { write(archive, "layer") }, true},
		{func() {}, true},
		{func() { write(archive, "LAYER") }, false},
		{func() { write(archive, "layer") }, true},
		{func() { os.Remove(archive) }, false},
	} {
		step.do()
		check.Same(t, fmt.Sprintf("step %d", i), step.want, e.intact(archive))
	}
}
