// Package packtest compresses data for tests of what reads it.
package packtest

import (
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"builder/test/kit/must"
)

// Compress returns data as it is in a file with this name: .tar, .gz, .tgz, .xz, .txz or
// .zst.
func Compress(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch path.Ext(name) {
	case ".tar":
		return data
	case ".gz", ".tgz":
		w = gzip.NewWriter(&b)
	case ".xz", ".txz":
		w, err = xz.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	default:
		t.Fatalf("%s names an unknown compression", name)
	}
	must.Succeed(t, err)
	_, err = w.Write(data)
	must.Succeed(t, err, w.Close())
	return b.Bytes()
}
