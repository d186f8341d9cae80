// Package golden compares the output of a test with a reviewed file, and rewrites the
// file with -update.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Updating reports whether files are rewritten, for tests with their own comparison.
func Updating() bool { return *update }

// Check compares got with testdata/name.
func Check(t *testing.T, name string, got []byte) {
	t.Helper()
	CheckFile(t, filepath.Join("testdata", name), got)
}

// CheckFile compares got with the file at path.
func CheckFile(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must.Hold(t, err == nil, "%v (write it with -update)", err)
	check.Same(t, fmt.Sprintf("%s differs; if the new text is right, write it with -update", path), string(want), string(got))
}

// CheckSection compares got with the part of the file at path between two markers.
func CheckSection(t *testing.T, path, begin, end, got string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	must.Hold(t, ok1 && ok2, "%s lacks its markers", path)
	CheckFile(t, path, []byte(before+begin+got+end+after))
}

// CheckEmbedded compares the data files of the working directory with the embedded
// ones, because go:embed silently omits files, and returns their content by name. Go
// files and the names in beside are not data files.
func CheckEmbedded(t *testing.T, embedded fs.FS, beside ...string) map[string][]byte {
	t.Helper()
	entries := must.Get(os.ReadDir("."))(t)
	files := map[string][]byte{}
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".go") || slices.Contains(beside, name) {
			continue
		}
		want := must.Get(os.ReadFile(name))(t)
		got, err := fs.ReadFile(embedded, name)
		check.That(t, err == nil && bytes.Equal(got, want), "%s: the embedded text differs from the file: %v", name, err)
		files[name] = want
	}
	return files
}
