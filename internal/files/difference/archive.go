package difference

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
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

// entry holds the metadata of an archive member and the digest of its contents.
type entry struct {
	says string
	sum  [sha256.Size]byte
}

// archives compares two tar archives, member by member.
func archives(first, second string) ([]string, error) {
	here, err1 := entries(first)
	there, err2 := entries(second)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	names, others := slices.Sorted(maps.Keys(here)), slices.Sorted(maps.Keys(there))
	lines := append(lacking(names, others, "only the first build made "), lacking(others, names, "only the second build made ")...)
	for _, name := range names {
		a := here[name]
		b, ok := there[name]
		switch {
		case !ok || a == b:
		case a.sum != b.sum:
			lines = append(lines, name+" differs")
		default:
			lines = append(lines, fmt.Sprintf("%s is the same file with %s and %s: pack with a fixed time, owner and mode", name, a.says, b.says))
		}
	}
	if len(lines) == 0 {
		lines = []string{"the members are the same: their order or the compression differs; gzip keeps a name and a time without -n"}
	}
	return lines, nil
}

func entries(file string) (map[string]entry, error) {
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
	all := map[string]entry{}
	for r := tar.NewReader(io.LimitReader(plain, maxArchive)); len(all) < maxEntries; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return nil, err
		}
		e := entry{says: fmt.Sprintf("mode %o, owner %d:%d and time %d", h.Mode, h.Uid, h.Gid, h.ModTime.Unix())}
		if h.Linkname != "" {
			e.says += ", a link to " + h.Linkname
		}
		copy(e.sum[:], sum.Sum(nil))
		all[h.Name] = e
	}
	return nil, fmt.Errorf("it holds more than the limit of %d entries", maxEntries)
}
