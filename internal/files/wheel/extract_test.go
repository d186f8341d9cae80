package wheel

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExtract(t *testing.T) {
	w := openEntries(
		t,
		entry{"nvidia/", "", fs.ModeDir | 0o755},
		entry{"nvidia/nccl/lib/libnccl.so.2", "library", 0o4777},
		entry{"nvidia/nccl/lib/deeper/more", "not asked for", 0o644},
		entry{"nvidia/nccl/lib/a.txt", "", 0},
	)
	dir := t.TempDir()
	paths, err := w.Extract(dir, "nvidia/*/lib/*")
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, "nvidia/nccl/lib")
	want := []string{filepath.Join(lib, "a.txt"), filepath.Join(lib, "libnccl.so.2")}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for path, mode := range map[string]fs.FileMode{want[0]: 0o644, want[1]: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want mode %v", path, info, err, mode)
		}
	}
	if got, err := os.ReadFile(want[1]); err != nil || string(got) != "library" {
		t.Errorf("the library holds %q, %v", got, err)
	}
	if entries, err := os.ReadDir(lib); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: want the two files and no more", entries, err)
	}
}

func TestExtractRefuses(t *testing.T) {
	w := openEntries(
		t,
		entry{"file", "", 0o644},
		entry{"there", "new", 0o644},
		entry{"way/out", "", 0o644},
	)
	tests := map[string]string{
		"there":  "exists",
		"way/*":  "escapes",
		"none/*": `no file matches "none/*"`,
		"[":      "syntax error",
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "to")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(parent, filepath.Join(dir, "way")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Extract(dir, "file"); err != nil {
		t.Fatal(err)
	}
	for pattern, want := range tests {
		if _, err := w.Extract(dir, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Extract(%q) = %v, want an error with %q", pattern, err, want)
		}
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("beside the directory lies %v, %v", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "there")); err != nil || string(got) != "old" {
		t.Errorf("the file that was there holds %q, %v", got, err)
	}
	if _, err := w.Extract(filepath.Join(parent, "absent"), "file"); err == nil {
		t.Error("a directory that is not there was written to")
	}
}
