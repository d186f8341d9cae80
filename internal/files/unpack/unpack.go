// Package unpack opens compressed streams by the suffix of the file name, as used by
// Debian packages and upstream archives.
package unpack

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
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
		t := &tail{r: r}
		plain, err := xz.ReaderConfig{SingleStream: true}.NewReader(bufio.NewReader(t)) // the library reads byte by byte
		if err != nil {
			return nil, err
		}
		return io.NopCloser(xzReader{plain, t}), nil
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%s has %w", name, ErrUnknown)
}

// footer is the size of the stream footer: a checksum, the 6 bytes it covers, and two
// magic letters (xz-file-format.txt, 2.1.2).
const footer = 12

// xzReader requires the footer of the only stream at the end. The library accepts a file
// truncated after the header or after a block.
type xzReader struct {
	plain io.Reader
	tail  *tail
}

func (x xzReader) Read(p []byte) (int, error) {
	n, err := x.plain.Read(p)
	if errors.Is(err, io.EOF) && !x.tail.isFooter() {
		err = errors.New("xz: the file ends before its stream")
	}
	return n, err
}

// tail passes bytes through and keeps the last ones.
type tail struct {
	r    io.Reader
	last []byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	all := slices.Concat(t.last, p[max(0, n-footer):n])
	t.last = all[max(0, len(all)-footer):]
	return n, err
}

func (t *tail) isFooter() bool {
	return len(t.last) == footer && string(t.last[10:]) == "YZ" &&
		binary.LittleEndian.Uint32(t.last) == crc32.ChecksumIEEE(t.last[4:10])
}
