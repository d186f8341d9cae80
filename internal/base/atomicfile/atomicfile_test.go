package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first", "second", ""} {
		must.Succeed(t, Write(path, []byte(content)))
		data, err := os.ReadFile(path)
		check.That(t, err == nil && string(data) == content, "%q, %v", data, err)
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
	data, readErr := os.ReadFile(path)
	check.That(t, errors.Is(err, broken) && readErr == nil && string(data) == "", "%v, %q, %v", err, data, readErr)
	left, err := os.ReadDir(filepath.Dir(path))
	check.That(t, err == nil && len(left) == 1, "%v, %v", left, err)
	err = Write(filepath.Join(path, "x"), nil)
	check.That(t, err != nil, "a file is no directory")
}

func TestWriteHere(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Succeed(t, Write("file", []byte("x")), Write("a/b/file", []byte("x")))
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	err := Copy(from, to)
	check.That(t, errors.Is(err, os.ErrNotExist), "without a file: %v", err)
	must.Succeed(t, os.WriteFile(from, []byte("new"), 0o600), os.WriteFile(to, []byte("old and longer"), 0o600), Copy(from, to))
	data, err := os.ReadFile(to)
	check.That(t, err == nil && string(data) == "new", "%q, %v", data, err)
}
