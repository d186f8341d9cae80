package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// existing returns the home or its nearest existing parent directory.
func (e *exam) existing() string {
	dir := path.Clean(e.work.Home)
	for dir != "/" && !e.Exists(dir) {
		dir = path.Dir(dir)
	}
	return dir
}

// shared and volatile are file systems poorly suited for a home.
var (
	shared   = []string{"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "9p", "virtiofs"}
	volatile = []string{"tmpfs", "ramfs"}
)

// stateDirectory checks whether the home is writable, and its file system.
func stateDirectory(_ context.Context, e *exam) Finding {
	dir := e.existing()
	elsewhere := "set BUILDER_HOME to a writable directory on a local disk"
	if info, err := e.Stat(dir); err != nil || !info.IsDir() {
		return fail("%s is not a directory", dir).remedy("%s", elsewhere)
	}
	if err := e.Writable(dir); err != nil {
		return fail("%s is not writable: %v", dir, err).remedy("%s", elsewhere)
	}
	m, found := e.Mount(dir)
	what := fmt.Sprintf("%s on %s", e.work.Home, m.Kind)
	switch {
	case !found:
		return unknown("%s is writable; its file system is unknown", e.work.Home)
	case m.Has("noexec") && e.work.Engine.Kind == Native:
		return fail("%s, mounted noexec, but the native engine runs programs there", what).remedy("%s", elsewhere)
	case slices.Contains(shared, m.Kind) || strings.HasPrefix(m.Kind, "fuse"):
		return warn("%s: locks and unpacked images are slow there, or do not work", what).remedy("%s", elsewhere)
	case slices.Contains(volatile, m.Kind):
		return warn("%s: it uses memory, and a restart empties it", what).remedy("%s", elsewhere)
	case dir != path.Clean(e.work.Home):
		return ok("%s, created by the first run", what)
	}
	return ok("%s", what)
}

// locks lists the processes that hold the locks of a home. The kernel's list gives
// process and inode.
func locks(_ context.Context, e *exam) Finding {
	text, err := e.Text("/proc/locks")
	if err != nil {
		return unknown("%s", because(err))
	}
	files := map[string]string{} // by inode
	for _, name := range e.lockFiles() {
		info, err := e.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unknown("%s", because(err))
		}
		if stat, is := info.Sys().(*syscall.Stat_t); is {
			files[fmt.Sprint(stat.Ino)] = strings.TrimPrefix(name, path.Clean(e.work.Home)+"/")
		}
	}
	var held []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 12209 fe:00:9978624 0 EOF
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		if name, ours := files[f[5][strings.LastIndexByte(f[5], ':')+1:]]; ours {
			held = append(held, fmt.Sprintf("%s by %s", name, e.process(f[4])))
		}
	}
	if len(held) == 0 {
		return ok("no process")
	}
	slices.Sort(held)
	return ok("%s", strings.Join(slices.Compact(held), ", "))
}

// lockFiles returns the lock files of a home.
func (e *exam) lockFiles() []string {
	home := path.Clean(e.work.Home)
	files := []string{home + "/store/users", home + "/engine/lock", home + "/engine/pid"}
	for _, name := range e.Names(home + "/store/lock") {
		files = append(files, home+"/store/lock/"+name)
	}
	return files
}

// process returns the number of a process and, if it is visible in this PID namespace,
// its name.
func (e *exam) process(pid string) string {
	if name := e.Says("/proc/" + path.Base(pid) + "/comm"); name != "" {
		return fmt.Sprintf("process %s (%s)", pid, name)
	}
	return "process " + pid
}

// storeSize adds up the files of the store.
func storeSize(ctx context.Context, e *exam) Finding {
	dir := path.Clean(e.work.Home) + "/store/sha256"
	switch _, err := e.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return none("empty")
	case err != nil:
		return unknown("%s", because(err))
	}
	var files int
	var bytes int64
	err := e.Walk(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			files++
			bytes += info.Size()
		}
		return ctx.Err()
	})
	if err != nil {
		return unknown("%s", because(err))
	}
	return ok("%s, %s", count(files, "file"), size(bytes))
}
