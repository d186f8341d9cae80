package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestBound(t *testing.T) {
	for cache, want := range map[int64]string{
		0:    "",
		40e9: "--oci-worker-gc-keepstorage 2000,4000,20000",
	} {
		check.Same(t, fmt.Sprintf("bound of %d", cache), want, strings.Join(Bound(cache), " "))
	}
	e := New(t.TempDir(), t.Logf, Options{Cache: 40e9})
	args := e.process.command("engine").Args
	check.That(t, slices.Contains(args, "2000,4000,20000"), "the engine is started without its bound: %q", args)
}

func TestEmpty(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	err := e.Empty(t.Context())
	check.That(t, err == nil, "nothing there: %v", err)
	file := filepath.Join(e.dir, "state", "worker", "snapshot")
	must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, make([]byte, 100_000), 0o644))
	must.Succeed(t, os.Link(file, file+"-again"))
	n, err := DiskUsage(t.Context(), filepath.Join(e.dir, "state"))
	check.That(t, err == nil && n >= 100_000 && n <= 150_000, "the cache has %d, %v", n, err)
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(filepath.Join(e.dir, "state")), "the cache is still there: %v", err)
	must.Succeed(t, os.MkdirAll(filepath.Join(e.dir, "state.old"), 0o755))
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(filepath.Join(e.dir, "state.old")), "a cache that was half removed is still there: %v", err)
}
