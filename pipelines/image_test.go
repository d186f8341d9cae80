package pipelines

import (
	"os"
	"sync"
	"syscall"
	"testing"

	"builder/internal/plan/lock"
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
			c := &cell{Engine: &Engine{Scratch: scratch}}
			path, err := c.bootstrap(t.Context(), lock.ImagePin{})
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
