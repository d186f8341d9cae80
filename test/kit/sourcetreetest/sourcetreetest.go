// Package sourcetreetest writes archives of source trees for tests. It shares no code
// with the package that reads them.
package sourcetreetest

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
)

// Write writes a tar archive of files, keyed by name and sorted by it. The same files
// result in the same bytes.
func Write(path string, files map[string]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := tar.NewWriter(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, wrote := io.WriteString(out, files[name])
		err = errors.Join(err, wrote)
	}
	return errors.Join(err, out.Close(), f.Close())
}
