package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/must"
)

// readOnly makes a directory read-only, also for root.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("a read-only disk needs the right to mount:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	must.Succeed(t, syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
}

// A read-only store serves its blobs and explains why it cannot add one.
func TestStoreThatCannotBeWritten(t *testing.T) {
	s := fresh(t)
	b, absent := put(t, s, "a.whl", "good"), blobOf(sample)
	readOnly(t, s.dir)
	s, err := Open(s.dir)
	must.Succeed(t, err)
	release, err := s.Hold(t.Context(), nil)
	must.Succeed(t, err)
	release()
	if _, err := s.Use(b); err != nil {
		t.Errorf("what is there: %v", err)
	}
	if err := os.Remove(slotOf(s.dir, b.SHA256).record); err == nil {
		t.Fatal("it can be written")
	}
	from := write(t, filepath.Join(t.TempDir(), "sample"), sample)
	_, err = s.Fetch(t.Context(), absent, []Place{Place(from)}, nil)
	e, ok := errors.AsType[*diag.Error](err)
	if !ok || e.Code != diag.Fetch {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"sample.whl", absent.SHA256, s.dir, "is not writable"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if !strings.Contains(e.Hint, "BUILDER_HOME") {
		t.Errorf("the hint is %q", e.Hint)
	}
}
