package owned

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/test/kit/must"
)

// sealed returns a directory of two programs and its record.
func sealed(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tool")
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "bin"), 0o777), os.WriteFile(filepath.Join(dir, "bin/a"), []byte("a"), 0o777),
		os.WriteFile(filepath.Join(dir, "b"), []byte("b"), 0o777), Seal(dir, dir),
	)
	must.Succeed(t, err)
	return dir
}

// A directory made with the umask 000 is closed to the writes of others, and intact.
func TestSealTakesWritesFromOthers(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := sealed(t)
	for _, name := range []string{"", "bin", "bin/a", "b"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := errors.Join(Intact(dir), Intact(dir, "b"), Intact(dir, "b", "bin/a")); err != nil {
		t.Error(err)
	}
	if err := Intact(dir, "b", "c"); err == nil {
		t.Error("a program that the record does not list is intact")
	}
}

func TestIntactFindsEveryChange(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"other bytes":         func(dir string) error { return os.WriteFile(filepath.Join(dir, "bin/a"), []byte("x"), 0o755) },
		"no file":             func(dir string) error { return os.Remove(filepath.Join(dir, "bin/a")) },
		"no record":           func(dir string) error { return os.Remove(Seals(dir)) },
		"an empty record":     func(dir string) error { return os.Truncate(Seals(dir), 0) },
		"others write a file": func(dir string) error { return os.Chmod(filepath.Join(dir, "bin/a"), 0o775) },
		"others write beside": func(dir string) error { return os.Chmod(filepath.Join(dir, "bin"), 0o777) },
		"others write above":  func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "bin/a")), os.Symlink("../b", filepath.Join(dir, "bin/a")))
		},
		"another owner": func(dir string) error { return os.Chown(filepath.Join(dir, "bin/a"), 65533, 65533) },
	} {
		dir := sealed(t)
		if err := change(dir); err != nil {
			if name == "another owner" && os.Geteuid() != 0 {
				continue // only root gives files away
			}
			t.Fatal(err)
		}
		if err := Intact(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
