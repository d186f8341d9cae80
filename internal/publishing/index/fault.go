package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"builder/internal/base/diag"
)

// errChanged is the fault of a file that is not what it was said to be.
var errChanged = errors.New("has changed")

// failed is the fault of writing: what was being done, and what to do about it. A
// fault that has its class keeps it, and an interruption is nobody's.
func failed(err error, format string, args ...any) error {
	_, ours := errors.AsType[*diag.Error](err)
	if ours || err == nil || is(err, context.Canceled, context.DeadlineExceeded) {
		return err
	}
	return diag.Errorf(diag.Publish, "%s: %w", fmt.Sprintf(format, args...), err).WithHint("%s", remedy(err))
}

// remedy says what to do about a fault of the disk, "" where nobody knows.
func remedy(err error) string {
	switch {
	case is(err, syscall.ENOSPC, syscall.EDQUOT):
		return "make room on the disk of the index, and publish again: no page names what is not whole"
	case is(err, syscall.EFBIG):
		return "raise the limit on the size of files (ulimit -f), and publish again"
	case is(err, syscall.EROFS, syscall.EACCES, syscall.EPERM):
		return "the index takes nothing from who runs builder: make it writable, or publish as its owner"
	case is(err, syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST):
		return "move away what is in the place of a directory or a file of the index, and publish again"
	case is(err, errChanged):
		return "let nothing write to the file, and publish again"
	}
	return ""
}

// is reports whether err is one of the targets.
func is(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
