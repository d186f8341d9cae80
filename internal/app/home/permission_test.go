package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// A permission error becomes a usage error. Its hint names the file's owner and the
// settings for another place. Other errors stay unchanged.
func TestDenied(t *testing.T) {
	file, theirs := t.TempDir(), t.TempDir()
	refused := &fs.PathError{Op: "mkdir", Path: file + "/store/sha256", Err: syscall.EACCES}
	type test struct {
		err  error
		code diag.Code
		hint string
	}
	tests := map[string]test{
		"another's":         {fmt.Errorf("opening store: %w", refused), diag.Usage, "you cannot write below " + file + ": name a writable directory (BUILDER_HOME"},
		"read-only":         {&fs.PathError{Op: "mkdir", Path: file, Err: syscall.EROFS}, diag.Usage, "the file system is mounted read-only: name another directory (BUILDER_HOME"},
		"below a file":      {&fs.PathError{Op: "mkdir", Path: "/proc/1/home", Err: fs.ErrNotExist}, diag.Usage, "you cannot write below /proc/1: "},
		"one of two errors": {errors.Join(errors.New("x"), refused), diag.Usage, "you cannot write below "},
		"has a class":       {diag.Errorf(diag.Publish, "%w", refused), diag.Publish, "you cannot write below "},
		"has a hint":        {diag.Errorf(diag.Publish, "%w", refused).WithHint("do"), diag.Publish, "do"},
		"does not exist":    {&fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}, diag.Unexpected, ""},
		"a full disk":       {&fs.PathError{Op: "write", Path: file, Err: syscall.ENOSPC}, diag.Unexpected, "the disk of this file is full: make room there"},
		"has no path":       {fs.ErrPermission, diag.Unexpected, ""},
		"no error":          {nil, diag.OK, ""},
	}
	if os.Chown(theirs, os.Geteuid()+1, -1) == nil { // only root may chown
		tests["somebody else's"] = test{&fs.PathError{Op: "open", Path: theirs + "/x", Err: syscall.EACCES}, diag.Usage, theirs + fmt.Sprintf(" belongs to user %d, and you are user %d: name a writable directory", os.Geteuid()+1, os.Geteuid())}
	}
	for name, c := range tests {
		got := Denied(c.err)
		hint := ""
		for _, err := range diag.All(got) {
			hint += err.Hint
		}
		check.That(t, diag.CodeOf(got) == c.code && strings.HasPrefix(hint, c.hint) && (c.hint != "" || hint == ""),
			"%s: code %v, hint %q", name, diag.CodeOf(got), hint)
	}
}
