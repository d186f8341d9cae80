package index

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/test/kit/check"
)

// Each fault of a disk has the class of publishing and says what to do.
func TestHintsOfDiskFaults(t *testing.T) {
	for fault, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "free space on the disk", syscall.EFBIG: "raise the file size limit", syscall.EROFS: "make the index writable", syscall.EISDIR: "move the file or directory",
	} {
		err := failed(fmt.Errorf("publishing: %w", &fs.PathError{Op: "write", Path: "x", Err: fault}), "writing %s", "x")
		check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(diag.All(err)[0].Hint, want), "%v: %v", fault, err)
	}
	check.That(t, diag.CodeOf(failed(context.Canceled, "x")) == diag.Interrupted, "an interruption is no fault of the disk")
}

// Statements are taken before anybody verified them, so they are few and small.
func TestStatementsAreBounded(t *testing.T) {
	from := func(artifact.Artifact) store.Place { panic("it is read") }
	err := takeSaid(t.Context(), []artifact.Artifact{{Name: "a", Size: 2 << 30}}, from)
	check.Fails(t, err, "the source lists 2147483648 bytes, the limit is")
	err = takeSaid(t.Context(), make([]artifact.Artifact, maxStatements+1), from)
	check.Fails(t, err, "the source lists 257 statements, the limit is")
}
