package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"builder/internal/base/diag"
)

// ErrChanged means that a file differs from its stated digest.
var ErrChanged = errors.New("has changed")

// failed describes a failed write and adds a hint. It returns errors with a class and
// interruptions unchanged.
func failed(err error, format string, args ...any) error {
	_, ours := errors.AsType[*diag.Error](err)
	if ours || err == nil || is(err, context.Canceled, context.DeadlineExceeded) {
		return err
	}
	return diag.Errorf(diag.Publish, "%s: %w", fmt.Sprintf(format, args...), err).WithHint("%s", remedy(err))
}

// remedy returns a hint for a disk error, or "" for an unknown one.
func remedy(err error) string {
	switch {
	case is(err, syscall.ENOSPC, syscall.EDQUOT):
		return "free space on the disk of the index, and publish again; pages list only complete files"
	case is(err, syscall.EFBIG):
		return "raise the file size limit (ulimit -f), and publish again"
	case is(err, syscall.EROFS, syscall.EACCES, syscall.EPERM):
		return "make the index writable for this user, or publish as its owner"
	case is(err, syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST):
		return "move the file or directory at the named path away, and publish again"
	case is(err, ErrChanged):
		return "stop the program that writes to the file, and publish again"
	}
	return ""
}

// is reports whether err is one of the targets.
func is(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
