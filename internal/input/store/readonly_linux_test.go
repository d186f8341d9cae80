package store

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// readOnly makes a directory read-only, also for root.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("a read-only disk needs the right to mount:", err)
	}
	t.Cleanup(func() {
		err := syscall.Unmount(dir, syscall.MNT_DETACH)
		check.That(t, err == nil, "%v", err)
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
	release := must.Get(s.Hold(t.Context(), nil))(t)
	release()
	_, err = s.Use(b)
	check.That(t, err == nil, "what is there: %v", err)
	err = os.Remove(slotOf(s.dir, b.SHA256).record)
	must.Hold(t, err != nil, "it can be written")
	from := write(t, filepath.Join(t.TempDir(), "sample"), sample)
	_, err = s.Fetch(t.Context(), absent, []Place{Place(from)}, nil)
	e, ok := errors.AsType[*diag.Error](err)
	must.Hold(t, ok && e.Code == diag.Fetch, "got %v", err)
	for _, want := range []string{"sample.whl", absent.SHA256, s.dir, "is not writable"} {
		check.That(t, strings.Contains(err.Error(), want), "%q is not in %v", want, err)
	}
	check.That(t, strings.Contains(e.Hint, "BUILDER_HOME"), "the hint is %q", e.Hint)
}

func TestFetchOntoAFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("a small disk needs the right to mount:", err)
	}
	defer func() {
		err := syscall.Unmount(small, 0)
		check.That(t, err == nil, "%v", err)
	}()
	s := must.Get(Open(small))(t)
	b := blobOf(sample)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(w, r, sample) })
	local := write(t, filepath.Join(t.TempDir(), "sample"), sample)
	for _, from := range []Place{Place(server.URL), Place(local)} {
		_, err := s.Fetch(t.Context(), b, []Place{from, from}, nil)
		if diag.CodeOf(err) != diag.Fetch || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "is full") || !strings.Contains(hintOf(err), "builder store gc") {
			t.Errorf("%s: %v", from, err)
		}
		left := append(names(t, filepath.Join(small, partials)), names(t, filepath.Join(small, temps))...)
		check.That(t, len(left) == 0, "%s: left behind: %v", from, left)
	}
	check.Same(t, "asked", 1, len(server.asked()))
}

func hintOf(err error) string {
	e, ok := errors.AsType[*diag.Error](err)
	if !ok {
		return ""
	}
	return e.Hint
}
