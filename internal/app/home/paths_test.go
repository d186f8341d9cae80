package home

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// A permission error becomes a usage error, and its hint names the settings for another
// place. Other errors stay unchanged.
func TestDenied(t *testing.T) {
	refused := &fs.PathError{Op: "mkdir", Path: "/home/store", Err: syscall.EACCES}
	for name, c := range map[string]struct {
		err  error
		code diag.Code
		hint string
	}{
		"another's":         {fmt.Errorf("opening store: %w", refused), diag.Usage, elsewhere},
		"read-only":         {&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, diag.Usage, elsewhere},
		"below a file":      {&fs.PathError{Op: "mkdir", Path: "/proc/1/home", Err: fs.ErrNotExist}, diag.Usage, elsewhere},
		"one of two errors": {errors.Join(errors.New("x"), refused), diag.Usage, elsewhere},
		"has a class":       {diag.Errorf(diag.Publish, "%w", refused), diag.Publish, elsewhere},
		"has a hint":        {diag.Errorf(diag.Publish, "%w", refused).WithHint("do"), diag.Publish, "do"},
		"does not exist":    {&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, diag.Unexpected, ""},
		"a full disk":       {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, diag.Unexpected, "make room on the disk of this file"},
		"has no path":       {fs.ErrPermission, diag.Unexpected, ""},
		"no error":          {nil, diag.OK, ""},
	} {
		got := Denied(c.err)
		hint := ""
		for _, err := range diag.All(got) {
			hint += err.Hint
		}
		check.That(t, diag.CodeOf(got) == c.code && strings.HasPrefix(hint, c.hint) && (c.hint != "" || hint == ""),
			"%s: code %v, hint %q", name, diag.CodeOf(got), hint)
	}
}
