// Package unpack opens compressed streams by the suffix of the file name, as used by
// Debian packages and upstream archives.
package unpack

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/klauspost/compress/zstd"
)

// maxWindow limits the memory of the zstd decoder, in bytes.
const maxWindow = 256 << 20

// ErrUnknown is the error for a name whose suffix is that of no known compression.
var ErrUnknown = errors.New("an unknown compression")

// Reader decompresses r according to the suffix of name: .gz, .tgz, .xz, .txz or .zst.
// It returns a .tar unchanged. The caller must limit how much it reads.
func Reader(r io.Reader, name string) (io.ReadCloser, error) {
	switch path.Ext(name) {
	case ".tar":
		return io.NopCloser(r), nil
	case ".gz", ".tgz":
		return gzip.NewReader(r)
	case ".xz", ".txz":
		return newXZ(r)
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%s has %w", name, ErrUnknown)
}
