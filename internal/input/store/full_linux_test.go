package store

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestFetchOntoAFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("a small disk needs the right to mount:", err)
	}
	defer func() {
		err := syscall.Unmount(small, 0)
		check.That(t, err == nil, "%v", err)
	}()
	s, err := Open(small)
	must.Succeed(t, err)
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
