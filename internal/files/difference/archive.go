package difference

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/files/unpack"
)

// maxArchive limits the bytes unpacked from an archive, and maxEntries the entries
// read.
const (
	maxArchive = 8 << 30
	maxEntries = 100_000
)

// tarEnds are the file name extensions of source archives.
var tarEnds = []string{".tar", ".gz", ".tgz", ".xz", ".txz", ".zst"}

func isArchive(name string) bool { return slices.Contains(tarEnds, filepath.Ext(name)) }

// archives compares two tar archives, member by member.
func archives(first, second string) ([]string, error) {
	here, err1 := entries(first)
	there, err2 := entries(second)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return members(here, there, func(name string) ([]string, error) { return []string{name + " differs"}, nil })
}

// entries returns the sha256 of every entry, or the target of a link.
func entries(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plain, err := unpack.Reader(f, file)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	sums := map[string]string{}
	for r := tar.NewReader(io.LimitReader(plain, maxArchive)); len(sums) < maxEntries; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return sums, nil
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return nil, err
		}
		sums[h.Name] = string(sum.Sum(nil)) + h.Linkname
	}
	return nil, fmt.Errorf("it holds more than the limit of %d entries", maxEntries)
}
