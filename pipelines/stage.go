package pipelines

import (
	"fmt"
	"path/filepath"
	"strings"

	"dagger.io/dagger"

	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// locked is a file with a place in the store: a Debian package or a Python file.
type locked interface{ Blob() store.Blob }

// shortDigest distinguishes directories and volumes of the same kind.
func shortDigest(text string) string { return regular.Sum([]byte(text))[:16] }

// stage puts locked files into a directory for the engine, so that one mount covers all
// of them.
func stage[F locked](c *cell, name string, files ...F) (*dagger.Directory, error) {
	dir, err := lay(c, name, files...)
	if err != nil {
		return nil, err
	}
	return c.client.Host().Directory(dir), nil
}

// lay puts locked files under their names into a directory of this host.
func lay[F locked](c *cell, name string, files ...F) (string, error) {
	var blobs []store.Blob
	var list strings.Builder
	for _, f := range files {
		b := f.Blob()
		blobs = append(blobs, b)
		fmt.Fprintln(&list, b.Name, b.SHA256)
	}
	dir := filepath.Join(c.Scratch, name+"-"+shortDigest(list.String()))
	if err := c.Store.Stage(dir, blobs); err != nil {
		return "", fmt.Errorf("staging %s: %w", name, err)
	}
	return dir, nil
}
