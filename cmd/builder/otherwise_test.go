package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"builder/internal/diag"
)

// A path that the system refuses to a user is a usage error that says whose it is and
// what names another; other errors stay as they are.
func TestDenied(t *testing.T) {
	file := t.TempDir()
	refused := &fs.PathError{Op: "mkdir", Path: file + "/store/sha256", Err: syscall.EACCES}
	for name, c := range map[string]struct {
		err  error
		code diag.Code
		hint string
	}{
		"another's":        {fmt.Errorf("opening store: %w", refused), diag.Usage, fmt.Sprintf("this is user %d, %s belongs to user %d: name a place that you own (BUILDER_HOME", os.Geteuid(), file, os.Geteuid())},
		"read-only":        {&fs.PathError{Op: "mkdir", Path: file, Err: syscall.EROFS}, diag.Usage, "the file system is mounted read-only: name another place (BUILDER_HOME"},
		"one of two":       {errors.Join(errors.New("x"), refused), diag.Usage, "this is user "},
		"has a class":      {diag.Errorf(diag.Publish, "%w", refused), diag.Publish, "this is user "},
		"has a hint":       {diag.Errorf(diag.Publish, "%w", refused).WithHint("do"), diag.Publish, "do"},
		"is not there":     {&fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}, diag.Unexpected, ""},
		"has no path":      {fs.ErrPermission, diag.Unexpected, ""},
		"nothing is wrong": {nil, diag.OK, ""},
	} {
		got := denied(c.err)
		hint := ""
		for _, fault := range diag.All(got) {
			hint += fault.Hint
		}
		if diag.CodeOf(got) != c.code || !strings.HasPrefix(hint, c.hint) || c.hint == "" && hint != "" {
			t.Errorf("%s: code %v, hint %q", name, diag.CodeOf(got), hint)
		}
	}
}
