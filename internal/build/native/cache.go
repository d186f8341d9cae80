package native

import (
	"context"
	"fmt"

	"builder/internal/base/diag"
)

// Bound returns the engine's arguments that bound its cache to so many bytes; 0 is
// no bound. The engine collects when a client leaves, and then keeps half of them:
// the other half is for the cells at work. Where a disk has less than a tenth of the
// bound free it keeps less.
func Bound(cache int64) []string {
	if cache == 0 {
		return nil
	}
	const megabyte = 1e6
	return []string{"--oci-worker-gc-keepstorage", fmt.Sprintf("%d,%d,%d", cache/20/megabyte, cache/10/megabyte, Rest(cache)/megabyte)}
}

// Rest is what an engine keeps of a cache of so many bytes when no client is at work.
func Rest(cache int64) int64 { return cache / 2 }

// CacheBytes is what the cache takes on disk. To add it up takes seconds.
func (e *Engine) CacheBytes(ctx context.Context) (int64, error) {
	return DiskUsage(ctx, e.path("state"))
}

// Empty stops the engine, if it runs, and removes its cache. An engine that somebody
// uses is left alone, and that is an error.
func (e *Engine) Empty(ctx context.Context) error {
	if !exists(e.path("state")) {
		return nil
	}
	unlock, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if pid, alive := e.pid(); alive && e.connections() > 0 {
		return diag.Errorf(diag.NoEngine, "the engine (process %d) is in use: its cache stays", pid).
			WithHint("wait for the other run, or stop it: builder engine down")
	}
	if err := e.stop(ctx, stopTimeout); err != nil {
		return fmt.Errorf("stopping the native engine: %w", err)
	}
	return e.forget()
}
