package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/test/kit/must"
)

func TestInsideEndsAtTheDirectory(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "site")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(at("sub"), 0o700), os.WriteFile(at("sub/file"), []byte("four"), 0o600), os.WriteFile(at("sub/large"), []byte("more than four"), 0o600),
		os.WriteFile(filepath.Join(outer, "key"), []byte("key"), 0o600), syscall.Mkfifo(at("sub/pipe"), 0o600),
		os.Symlink("file", at("sub/link")), os.Symlink("../../key", at("sub/out")), os.Symlink("/dev/zero", at("sub/zero")),
		os.Symlink("pipe", at("sub/to-pipe")), os.Symlink("/", at("root")), os.Symlink("sub", at("alias")),
	} {
		must.Succeed(t, err)
	}
	whole := must.Get(Inside(dir, 4))(t)
	for name, want := range map[string]string{
		"sub/file": "", "sub/link": "", "alias/file": "",
		"sub/large":   "larger than 4 bytes",
		"sub/out":     "a symbolic link points outside " + dir,
		"sub/zero":    "a symbolic link points outside " + dir,
		"root/etc":    "a symbolic link points outside " + dir,
		"sub/pipe":    "a named pipe",
		"sub/to-pipe": "a named pipe",
		"sub/none":    "no such file",
		"../key":      "invalid",
	} {
		folder, file := filepath.Split(name)
		part, err := fs.Sub(whole, filepath.Clean(folder))
		var data []byte
		if err == nil {
			data, err = within(t, func() ([]byte, error) { return fs.ReadFile(part, file) })
		}
		switch {
		case want == "" && (err != nil || string(data) != "four"):
			t.Errorf("%s: %q, %v", name, data, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", name, err, want)
		case want != "" && data != nil:
			t.Errorf("%s: %q was read", name, data)
		}
	}
	if _, err := fs.Stat(whole, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
