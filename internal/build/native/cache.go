package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"builder/internal/base/diag"
)

// Bound returns the engine's arguments that limit its cache to cache bytes; 0 means no
// limit. The engine collects garbage when a client leaves. It then keeps half of the
// limit and leaves the other half to running cells. It keeps less if less than a tenth
// of the limit is free on the disk.
func Bound(cache int64) []string {
	if cache == 0 {
		return nil
	}
	const megabyte = 1e6
	return []string{"--oci-worker-gc-keepstorage", fmt.Sprintf("%d,%d,%d", cache/20/megabyte, cache/10/megabyte, cache/2/megabyte)}
}

// Empty stops the engine if it runs and removes its cache. It returns an error and
// changes nothing if a client uses the engine.
func (e *Engine) Empty(ctx context.Context) error {
	state, old := filepath.Join(e.dir, "state"), filepath.Join(e.dir, "state.old")
	if !exists(state) && !exists(old) {
		return nil
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if pid, alive := e.process.pid(); alive && used(e.process.socket) {
		return diag.Errorf(diag.NoEngine, "the engine (process %d) is in use, its cache was not removed", pid).
			WithHint("wait for the other run, or stop it: builder engine down")
	}
	if err := e.process.stop(ctx, stopTimeout); err != nil {
		return err
	}
	// Removing many files takes long and may be interrupted, a rename may not.
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(state, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// DiskUsage returns the size on disk of a directory in bytes, 0 if it does not exist. du
// counts a file with several names once: layers share files.
func DiskUsage(ctx context.Context, dir string) (int64, error) {
	if !exists(dir) {
		return 0, nil
	}
	out, err := exec.CommandContext(ctx, "du", "-sk", dir).Output()
	var kib int64
	if _, unread := fmt.Sscan(string(out), &kib); unread != nil {
		return 0, fmt.Errorf("asking du for the size of %s: %w", dir, errors.Join(err, unread))
	}
	return kib << 10, nil // du fails if files disappear meanwhile, and counts the others
}
