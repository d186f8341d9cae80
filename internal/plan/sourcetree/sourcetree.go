// Package sourcetree reads the archive of a source into memory, so that patches can be
// tried without a container. It makes no comparisons. Package audit and the gate
// "changes" do.
package sourcetree

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/plan/patch"
)

// A Tree is the editable part of a source tree, in memory. It does not verify targets
// of links into an image, because it has no image.
type Tree struct{ files map[string][]byte }

var _ patch.Tree = (*Tree)(nil)

// Of returns a tree of the given files. Edits change the map.
func Of(files map[string][]byte) *Tree { return &Tree{files} }

// Limits for reading an archive, in bytes.
const (
	maxFile = 8 << 20
	maxAll  = 1 << 30
)

// Read reads the files of a source for which wanted returns true. The source is an
// archive (tar, tar.gz), with names relative to its top folder, or a wheel.
func Read(archive string, wanted func(name string) bool) (*Tree, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	unpacked := io.Reader(in)
	switch magic, err := in.Peek(4); {
	case len(magic) < 4:
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	case string(magic) == "PK\x03\x04":
		files, err := wheel.ReadFiles(archive, wanted, maxFile)
		return Of(files), err
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		if unpacked, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
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

// WriteTo writes the files below an existing directory, never outside of it.
func (t *Tree) WriteTo(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, t.files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Clone returns a copy of t. Edits of the copy do not change t.
func (t *Tree) Clone() *Tree {
	return Of(maps.Clone(t.files)) // a shallow copy suffices: edits replace contents and never modify them
}

// Files returns the names of all files edited or created by the patches.
func Files(patches []patch.Patch) map[string]bool {
	names := map[string]bool{}
	for _, p := range patches {
		for _, e := range p.Edits {
			for _, name := range e.Files() {
				names[name] = true
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
