package doctor

import (
	"context"
	"fmt"
	"path"
	"slices"

	"builder/internal/base/size"
)

// leastFree is the free disk space in bytes without which no run starts. The programs of
// the engine and its empty cache take 1 GB, and the smallest cells measured, with 0.1 GB
// of inputs, took 1.2 to 1.4 GB of the cache (2026-11-22).
const leastFree = 3e9

// shared and volatile are file systems poorly suited for a state directory.
var (
	shared   = []string{"nfs", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "fuse"}
	volatile = []string{"tmpfs", "ramfs"}
)

const elsewhere = "set BUILDER_HOME to a writable directory on a local disk"

// disk checks whether the state directory is writable, its file system, and whether even
// a small cell could be built there. Nothing tells the need of a large one before its
// build.
func disk(_ context.Context, e *exam) Finding {
	if e.work.Home == "" {
		return fail("no state directory: neither BUILDER_HOME, XDG_CACHE_HOME nor HOME is set").remedy(elsewhere)
	}
	home := path.Clean(e.work.Home)
	dir := home
	for dir != "/" && !e.Exists(dir) {
		dir = path.Dir(dir)
	}
	if info, err := e.Stat(dir); err != nil || !info.IsDir() {
		return fail("%s is not a directory", dir).remedy(elsewhere)
	}
	if err := e.Writable(dir); err != nil {
		return fail("%s is not writable: %v", dir, err).remedy(elsewhere)
	}
	d, err := e.Disk(dir)
	if err != nil {
		return unknown("%v", err)
	}
	if d.Free < leastFree {
		return fail("less than %s free: %s", size.Text(leastFree), size.Text(d.Free)).
			remedy("free space: `builder store gc` empties the engine's cache, with --keep 0 the store too; or set BUILDER_HOME to a larger disk")
	}
	text := fmt.Sprintf("%s on %s, %s free", home, d.Kind, size.Text(d.Free))
	switch {
	case d.NoExec && e.work.Engine.Kind == Native:
		return fail("%s, mounted noexec, but the native engine runs programs there", text).remedy(elsewhere)
	case slices.Contains(shared, d.Kind):
		return warn("%s: locks and unpacked images are slow there, or do not work", text).remedy(elsewhere)
	case d.Kind == "overlay" && e.work.Engine.Kind == Native:
		return warn("%s: the engine has no overlayfs there and copies whole images", text).remedy(elsewhere)
	case slices.Contains(volatile, d.Kind):
		return warn("%s: it uses memory, and a restart empties it", text).remedy(elsewhere)
	}
	return ok("%s", text)
}
