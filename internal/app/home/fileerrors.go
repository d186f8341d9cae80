package home

import (
	"errors"
	"io/fs"
	"syscall"

	"builder/internal/base/diag"
)

// Denied turns errors of permission on files into usage errors. They and errors of a full
// disk get a hint, unless they have one.
func Denied(err error) error {
	all := diag.All(err)
	for _, err := range all {
		switch {
		case err.Hint != "":
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			err.Hint = "make room on the disk of this file, or " + elsewhere + ", and give the same command again"
		case refuses(err.Err):
			err.Hint = elsewhere
			if err.Code == diag.Unexpected {
				err.Code = diag.Usage
			}
		}
	}
	return diag.Joined(all)
}

const elsewhere = "name a directory that you can write to (BUILDER_HOME for the state directory, --out or --to for results)"

// refuses reports whether an error says that this user may not write to a path.
func refuses(err error) bool {
	problem, ok := errors.AsType[*fs.PathError](err)
	return ok && (errors.Is(problem.Err, syscall.EROFS) || errors.Is(problem.Err, fs.ErrPermission) || problem.Op == "mkdir")
}
