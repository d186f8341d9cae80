package difference_test

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/files/difference"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// packed writes an archive of files with the given owner. gzip stores name in its
// header.
func packed(t *testing.T, name string, owner int, files ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool.tar.gz")
	f, err := os.Create(path)
	must.Succeed(t, err)
	defer f.Close()
	z := gzip.NewWriter(f)
	z.Name = name
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		must.Succeed(t, w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Uid: owner, ModTime: time.Unix(7, 0), Size: int64(len(files[i+1]))}))
		_, err := w.Write([]byte(files[i+1]))
		must.Hold(t, err == nil, "%v", err)
	}
	must.Succeed(t, w.Close(), z.Close())
	return path
}

func TestArchives(t *testing.T) {
	first := packed(t, "", 0, "tool/a", "1", "tool/b", "2")
	for name, c := range map[string]struct {
		second string
		want   []string
	}{
		"content":     {packed(t, "", 0, "tool/a", "1", "tool/b", "3"), []string{"tool/b differs"}},
		"names":       {packed(t, "", 0, "tool/a", "1", "tool/c", "2"), []string{"only the first build made tool/b", "only the second build made tool/c"}},
		"order":       {packed(t, "", 0, "tool/b", "2", "tool/a", "1"), []string{"the members are the same: their times, owners, modes, order or compression differ"}},
		"compression": {packed(t, "x", 0, "tool/a", "1", "tool/b", "2"), []string{"the members are the same: their times, owners, modes, order or compression differ"}},
		"owner":       {packed(t, "", 1000, "tool/a", "1"), []string{"only the first build made tool/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := difference.Of(first, c.second)
			diff := cmp.Diff(c.want, got)
			check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
		})
	}
}
