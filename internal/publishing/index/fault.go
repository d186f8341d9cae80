package index

import (
	"context"
	"errors"
	"fmt"

	"builder/internal/base/diag"
)

// ErrChanged means that a file differs from its stated digest.
var ErrChanged = errors.New("has changed")

// failed describes a failed write. It returns errors with a class and interruptions
// unchanged.
func failed(err error, format string, args ...any) error {
	_, ours := errors.AsType[*diag.Error](err)
	if ours || err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return diag.Errorf(diag.Publish, "%s: %w", fmt.Sprintf(format, args...), err)
}
