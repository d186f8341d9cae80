package results_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"builder/internal/plan/stack"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The folder of a stack's wheels is installed as a whole, so it must hold nothing else
// afterwards.
func TestAWheelhouseIsLaidOutAsAWhole(t *testing.T) {
	r, _ := open(t, t.TempDir())
	house := made(t, "manifest", "wheel")
	house.Artifacts[1].Name = stack.Folder + "/" + house.Artifacts[1].Name
	keep(t, r, entry("stack/pair"), house)
	dir := t.TempDir()
	stale := filepath.Join(dir, stack.Folder, "old-1-py3-none-any.whl")
	must.Succeed(t, os.MkdirAll(filepath.Dir(stale), 0o755), os.WriteFile(stale, nil, 0o600))
	got, ok, err := r.Find(t.Context(), entry("stack/pair"), dir)
	must.Hold(t, ok && err == nil && got.Artifacts[1].Path == filepath.Join(dir, stack.Folder, "a-1.whl"), "%+v, %v, %v", got, ok, err)
	if data, err := os.ReadFile(got.Artifacts[1].Path); err != nil || string(data) != "wheel" {
		t.Errorf("%q, %v", data, err)
	}
	_, err = os.Stat(stale)
	check.That(t, errors.Is(err, fs.ErrNotExist), "what was there before is there: %v", err)
}
