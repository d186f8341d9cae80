package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/must"
)

func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second", ""} {
		must.Succeed(t, Write(path, []byte(content)))
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("%q, %v", data, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// Content that could not be written changes nothing and leaves no file.
	broken := errors.New("broken")
	err := Make(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, broken)
	})
	if data, readErr := os.ReadFile(path); !errors.Is(err, broken) || readErr != nil || string(data) != "" {
		t.Errorf("%v, %q, %v", err, data, readErr)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := Write(filepath.Join(path, "x"), nil); err == nil {
		t.Error("a file is no directory")
	}
}

func TestWriteHere(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Succeed(t, Write("file", []byte("x")), Write("a/b/file", []byte("x")))
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := Copy(from, to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	must.Succeed(t, os.WriteFile(from, []byte("new"), 0o600), os.WriteFile(to, []byte("old and longer"), 0o600), Copy(from, to))
	if data, err := os.ReadFile(to); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
}
