// Package sourcetree is the archive of a source as files in memory that patches
// can edit: where a patch is tried without a container. It compares nothing; who
// asks what patches do is the package audit, and the gate changes.
package sourcetree

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/plan/patch"
)

// A Tree is the part of a source tree that patches can edit, in memory. Links
// into an image are taken on trust: there is no image here.
type Tree struct{ files map[string][]byte }

var _ patch.Tree = (*Tree)(nil)

// Of returns the tree of these files, which it may edit.
func Of(files map[string][]byte) *Tree { return &Tree{files} }

// Bounds of what is read of an archive, in bytes.
const (
	maxFile = 8 << 20
	maxAll  = 1 << 30
)

// Read reads the files of a source that wanted chooses: an archive (tar, tar.gz),
// with names below its only folder, or a wheel, with names as they are.
func Read(archive string, wanted func(name string) bool) (*Tree, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if is, err := hasMagic(f, "PK\x03\x04"); err != nil || is {
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
		files, err := wheel.ReadFiles(archive, wanted, maxFile)
		return Of(files), err
	}
	unpacked, err := decompress(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	t := Of(map[string][]byte{})
	for r := tar.NewReader(io.LimitReader(unpacked, maxAll)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
		_, name, _ := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || h.Size > maxFile || !wanted(name) {
			continue
		}
		if t.files[name], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
	}
}

func decompress(f *os.File) (io.Reader, error) {
	compressed, err := hasMagic(f, "\x1f\x8b")
	if err != nil {
		return nil, err
	}
	if compressed {
		return gzip.NewReader(f)
	}
	return f, nil
}

// hasMagic reports whether a file begins with magic, and leaves it at its start.
func hasMagic(f *os.File, magic string) (bool, error) {
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(f, begin); err != nil {
		return false, err
	}
	_, err := f.Seek(0, io.SeekStart)
	return string(begin) == magic, err
}

// Clone returns a tree that can be edited without changing t.
func (t *Tree) Clone() *Tree {
	return Of(maps.Clone(t.files)) // edits replace contents and never change them
}

// Files returns the names that a patch edits or makes.
func Files(patches []patch.Patch) map[string]bool {
	names := map[string]bool{}
	for _, p := range patches {
		for _, e := range p.Edits {
			if e.File != "" {
				names[e.File] = true
			}
			if e.Link != "" {
				names[e.Link] = true
			}
			if e.Kind == patch.Diff {
				for name := range patch.Removed(e) {
					names[name] = true
				}
			}
		}
	}
	return names
}

// ReadFile implements [patch.Tree].
func (t *Tree) ReadFile(_ context.Context, name string) ([]byte, error) {
	data, ok := t.files[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return data, nil
}

// WriteFile implements [patch.Tree].
func (t *Tree) WriteFile(_ context.Context, name string, data []byte) error {
	t.files[name] = data
	return nil
}

// Symlink implements [patch.Tree].
func (t *Tree) Symlink(_ context.Context, target, link string) error {
	t.files[link] = []byte(target)
	return nil
}
