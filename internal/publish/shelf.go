package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/artifact"
	"builder/internal/attest"
	"builder/internal/index"
	"builder/internal/oci"
	"builder/internal/store"
)

// A Shelf is a place where others have published. Bring lays what is published
// under the key of a cell out in dir, as a run leaves it, and returns the path of
// the wheel; where there is nothing the error is [ErrNotPublished]. What comes is
// checked against the digests of the place and against nothing else: [Load] says
// whether it can be trusted.
type Shelf interface {
	Bring(ctx context.Context, key, dir string) (wheel string, err error)
}

// ErrNotPublished says that a place has nothing under a key.
var ErrNotPublished = errors.New("it is not published there")

var (
	_ Shelf = indexShelf{}
	_ Shelf = registryShelf{}
)

// Shelves explains how a shelf is written.
const Shelves = "file:DIR, oci://HOST/REPOSITORY or the URL of an index"

// OpenShelf reads the place of a shelf. What comes over the network from an index
// goes through s.
func OpenShelf(text string, insecure bool, s *store.Store) (Shelf, error) {
	switch {
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		return indexShelf{index.OpenRemote(text, s)}, nil
	case strings.HasPrefix(text, oci.Scheme):
		repo, err := oci.OpenRepository(text, oci.Options{Insecure: insecure})
		return registryShelf{repo}, err
	}
	dir, err := DirectoryOf(text)
	if err != nil {
		return nil, err
	}
	return indexShelf{index.Open(dir)}, nil
}

// records is an index that can be read.
type records interface {
	Find(ctx context.Context, key string) (index.Record, error)
	Take(ctx context.Context, r index.Record, dir string) (wheel artifact.Artifact, err error)
}

type indexShelf struct{ records }

// Bring implements [Shelf].
func (x indexShelf) Bring(ctx context.Context, key, dir string) (string, error) {
	r, err := x.Find(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotPublished
	}
	if err != nil {
		return "", err
	}
	wheel, err := x.Take(ctx, r, dir)
	return wheel.Path, err
}

type registryShelf struct{ *oci.Repository }

// Bring implements [Shelf].
func (r registryShelf) Bring(ctx context.Context, key, dir string) (string, error) {
	digest, err := r.Resolve(ctx, keyTag(key))
	if _, missing := errors.AsType[*oci.NotFound](err); missing {
		return "", ErrNotPublished
	}
	if err != nil {
		return "", err
	}
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	wheel := ""
	for _, f := range m.Files {
		if err := r.Fetch(ctx, f, dir, nil); err != nil {
			return "", err
		}
		if filepath.Ext(f.Name) == ".whl" {
			wheel = filepath.Join(dir, f.Name)
		}
	}
	if wheel == "" {
		return "", fmt.Errorf("%s@%s holds no wheel", r, digest)
	}
	return wheel, r.bringSaid(ctx, digest, attest.Dir(wheel))
}

// bringSaid lays out what was said about a package. What others have put beside it
// and cannot be read, or is no statement of ours, is passed over.
func (r registryShelf) bringSaid(ctx context.Context, digest, dir string) error {
	all, err := r.Referrers(ctx, digest)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, ref := range all {
		if ref.Fault != nil || ref.ArtifactType != bundleType && ref.ArtifactType != plainType {
			continue
		}
		for _, f := range ref.Files {
			if _, err := os.Stat(filepath.Join(dir, f.Name)); err == nil {
				continue // two publishers at once: one of them is enough
			}
			if err := r.Fetch(ctx, f, dir, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
