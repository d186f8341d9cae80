package pipelines

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"dagger.io/dagger"

	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
)

// stage puts blobs into a directory for the engine, so that one mount covers all of
// them.
func (c *cell) stage(name string, blobs []store.Blob) (*dagger.Directory, error) {
	dir, err := c.lay(name, blobs)
	if err != nil {
		return nil, err
	}
	return c.client.Host().Directory(dir), nil
}

// lay puts blobs under their names into a directory of this host.
func (c *cell) lay(name string, blobs []store.Blob) (string, error) {
	var list strings.Builder
	for _, b := range blobs {
		fmt.Fprintln(&list, b.Name, b.SHA256)
	}
	dir := filepath.Join(c.Scratch, name+"-"+shortDigest(list.String()))
	if err := c.Store.Stage(dir, blobs); err != nil {
		return "", fmt.Errorf("staging %s: %w", name, err)
	}
	return dir, nil
}

// shortDigest distinguishes directories and volumes of the same kind.
func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// debBlobs returns the files of locked Debian packages in the store.
func debBlobs(packages []deb.Package) []store.Blob {
	blobs := make([]store.Blob, len(packages))
	for i, p := range packages {
		blobs[i] = p.Blob()
	}
	return blobs
}

// pythonBlobs returns the files of locked Python packages in the store.
func pythonBlobs(files []pypi.File) []store.Blob {
	blobs := make([]store.Blob, len(files))
	for i, f := range files {
		blobs[i] = f.Blob()
	}
	return blobs
}
