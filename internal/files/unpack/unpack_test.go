package unpack_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"builder/internal/files/unpack"
	"builder/test/kit/check"
	"builder/test/kit/packtest"
)

func packed(t testing.TB, suffix, text string) []byte {
	t.Helper()
	return packtest.Compress(t, "file"+suffix, []byte(text))
}

func TestReader(t *testing.T) {
	for _, suffix := range []string{".tar", ".gz", ".tgz", ".xz", ".txz", ".zst"} {
		r, err := unpack.Reader(bytes.NewReader(packed(t, suffix, "what was packed")), "file"+suffix)
		if err != nil {
			t.Errorf("%s: %v", suffix, err)
			continue
		}
		have, err := io.ReadAll(r)
		check.That(t, err == nil && string(have) == "what was packed", "%s: %q, %v", suffix, have, err)
		err = r.Close()
		check.That(t, err == nil, "closing %s: %v", suffix, err)
	}
}

func TestReaderRefuses(t *testing.T) {
	_, err := unpack.Reader(strings.NewReader(""), "data.tar.lzma")
	check.Fails(t, err, "data.tar.lzma has an unknown compression")
}

func TestReaderRefusesEveryTruncation(t *testing.T) {
	for _, suffix := range []string{".gz", ".xz", ".zst"} {
		whole := packed(t, suffix, strings.Repeat("text ", 1000))
		for n := 1; n < len(whole); n++ { // zstd accepts an empty file
			err := readAll(whole[:n], suffix)
			check.That(t, err != nil, "%d of %d bytes of a file%s were read to their end", n, len(whole), suffix)
		}
	}
}

func readAll(data []byte, suffix string) error {
	r, err := unpack.Reader(iotest.HalfReader(bytes.NewReader(data)), "file"+suffix)
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return err
}

// dpkg and xz write one stream.
func TestFurtherStreams(t *testing.T) {
	one := packed(t, ".xz", "text")
	for _, more := range [][]byte{make([]byte, 4), one, one[:12]} {
		check.That(t, readAll(append(bytes.Clone(one), more...), ".xz") != nil, "%d bytes after a stream are ignored", len(more))
	}
}

// The caller limits the bytes read, here to a megabyte.
func FuzzReader(f *testing.F) {
	suffixes := []string{".gz", ".xz", ".zst", ".tar"}
	for i, suffix := range suffixes {
		f.Add(packed(f, suffix, "text"), i)
	}
	f.Fuzz(func(_ *testing.T, data []byte, i int) {
		r, err := unpack.Reader(bytes.NewReader(data), "file"+suffixes[uint(i)%uint(len(suffixes))])
		if err == nil {
			io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			r.Close()
		}
	})
}
