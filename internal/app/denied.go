package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"builder/internal/base/diag"
)

// Denied turns permission errors on files into usage errors. The hint names the file's
// owner and the settings for another place.
func Denied(err error) error {
	all := diag.All(err)
	changed := false
	for _, fault := range all {
		path, readOnly := refusedPath(fault.Err)
		if path == "" || fault.Hint != "" {
			continue
		}
		changed = true
		if fault.Code == diag.Unexpected {
			fault.Code = diag.Usage
		}
		fault.Hint = fmt.Sprintf("%s: name a place that you can write to (BUILDER_HOME for the state directory, --out for results)", ownerOf(path))
		if readOnly {
			fault.Hint = "the file system is mounted read-only: name another place (BUILDER_HOME for the state directory, --out for results)"
		}
	}
	if !changed {
		return err
	}
	return Joined(all)
}

// Joined joins errors.
func Joined(all []*diag.Error) error {
	faults := make([]error, len(all))
	for i, fault := range all {
		faults[i] = fault
	}
	return errors.Join(faults...)
}

// refusedPath returns the path denied to this user, or "".
func refusedPath(err error) (path string, readOnly bool) {
	fault, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return "", false
	}
	readOnly = errors.Is(fault.Err, syscall.EROFS)
	if readOnly || errors.Is(fault.Err, fs.ErrPermission) || fault.Op == "mkdir" {
		return fault.Path, readOnly
	}
	return "", false
}

// ownerOf names the owner of a path or of its nearest existing parent directory.
func ownerOf(path string) string {
	for ; path != "" && path != "/" && path != "."; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) != os.Geteuid() {
			return fmt.Sprintf("%s belongs to user %d, and this is user %d", path, of.Uid, os.Geteuid())
		}
		return "nothing can be written below " + path
	}
	return "nothing can be written there"
}
