package home

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
// owner and the settings for another place. A full disk gets a hint too.
func Denied(err error) error {
	all := diag.All(err)
	changed := false
	for _, err := range all {
		if err.Hint == "" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) {
			changed = true
			err.Hint = "the disk of this file is full: make room there, or name another directory (BUILDER_HOME for the state directory, --out or --to for results), and give the same command again"
			continue
		}
		path, readOnly := refusedPath(err.Err)
		if path == "" || err.Hint != "" {
			continue
		}
		changed = true
		if err.Code == diag.Unexpected {
			err.Code = diag.Usage
		}
		err.Hint = fmt.Sprintf("%s: name a writable directory (BUILDER_HOME for the state directory, --out or --to for results)", ownerOf(path))
		if readOnly {
			err.Hint = "the file system is mounted read-only: name another directory (BUILDER_HOME for the state directory, --out or --to for results)"
		}
	}
	if !changed {
		return err
	}
	return diag.Joined(all)
}

// refusedPath returns the path denied to this user, or "".
func refusedPath(err error) (path string, readOnly bool) {
	problem, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return "", false
	}
	readOnly = errors.Is(problem.Err, syscall.EROFS)
	if readOnly || errors.Is(problem.Err, fs.ErrPermission) || problem.Op == "mkdir" {
		return problem.Path, readOnly
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
			return fmt.Sprintf("%s belongs to user %d, and you are user %d", path, of.Uid, os.Geteuid())
		}
		return "you cannot write below " + path
	}
	return "you cannot write there"
}
