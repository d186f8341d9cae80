package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/index"
	"builder/internal/oci"
	"builder/internal/store"
)

// A Shelf is a place where others have published.
type Shelf interface {
	// Bring lays what is published under the key of a cell out in dir, as a run
	// leaves it, and returns the path of the wheel; where there is nothing the error
	// is [ErrNotPublished]. What comes is checked against the digests of the place
	// and against nothing else: [Load] says whether it can be trusted.
	Bring(ctx context.Context, key, dir string) (wheel string, err error)
	// List says what is there: what the place says, verified by nobody.
	List(ctx context.Context) ([]index.Record, error)
	String() string
}

// ErrNotPublished says that a place has nothing under a key.
var ErrNotPublished = errors.New("it is not published there")

var _ Shelf = indexShelf{}

// Shelves explains how a shelf is written.
const Shelves = "file:DIR, oci://HOST/REPOSITORY or the URL of an index"

// OpenShelf reads the place of a shelf. What comes over the network from an index
// goes through s.
func OpenShelf(text string, insecure bool, s *store.Store) (Shelf, error) {
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return indexShelf{index.OpenRemote(text, s), store.Redact(text)}, nil
	}
	if strings.HasPrefix(text, oci.Scheme) {
		return openRegistry(text, insecure)
	}
	return openDirectory(text)
}

// records is an index that can be read.
type records interface {
	All(ctx context.Context) ([]index.Record, error)
	Find(ctx context.Context, key string) (index.Record, error)
	Take(ctx context.Context, r index.Record, dir string) (wheel artifact.Artifact, err error)
}

type indexShelf struct {
	records
	name string
}

// String implements [Shelf].
func (x indexShelf) String() string { return x.name }

// List implements [Shelf].
func (x indexShelf) List(ctx context.Context) ([]index.Record, error) { return x.All(ctx) }

// Bring implements [Shelf].
func (x indexShelf) Bring(ctx context.Context, key, dir string) (string, error) {
	r, err := x.Find(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotPublished
	}
	if err == nil && r.Yanked != "" {
		err = fmt.Errorf("it was yanked: %s", r.Yanked)
	}
	if err != nil {
		return "", err
	}
	wheel, err := x.Take(ctx, r, dir)
	return wheel.Path, err
}

// FindCell returns what a place says of a cell, by its id or key.
func FindCell(ctx context.Context, at Shelf, name string) (index.Record, error) {
	all, err := at.List(ctx)
	if err != nil {
		return index.Record{}, err
	}
	var ids []string
	for _, r := range all {
		if r.Cell == name || r.Key == name {
			return r, nil
		}
		ids = append(ids, r.Cell)
	}
	return index.Record{}, diag.Errorf(diag.Usage, "%s holds no cell %q", at, name).WithHint("%s", diag.DidYouMean(name, ids))
}
