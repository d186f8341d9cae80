package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
)

// A Source is a place where others have published.
type Source interface {
	// Bring lays what is published under the key of a cell out in dir, as a run
	// leaves it, and returns the path of the wheel; where there is nothing the error
	// is [ErrNotPublished]. What is said about the wheel comes first, and the files
	// that vet admits after it: [Load] says whether all of it can be trusted.
	Bring(ctx context.Context, key, dir string, vet index.Vet) (wheel string, err error)
	// List says what is there: what the place says, verified by nobody.
	List(ctx context.Context) ([]index.Record, error)
	String() string
}

// ErrNotPublished says that a place has nothing under a key.
var ErrNotPublished = errors.New("it is not published there")

var _ Source = indexSource{}

// Sources explains how a source is written.
const Sources = "file:DIR, oci://HOST/REPOSITORY or the URL of an index"

// OpenSource reads the place of a source. What comes over the network from an index
// goes through s.
func OpenSource(text string, insecure bool, s *store.Store) (Source, error) {
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		return indexSource{index.OpenRemote(text, s), store.Redact(text)}, nil
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
	Take(ctx context.Context, r index.Record, dir string, vet index.Vet) (wheel artifact.Artifact, err error)
}

type indexSource struct {
	records
	name string
}

// String implements [Source].
func (x indexSource) String() string { return x.name }

// List implements [Source].
func (x indexSource) List(ctx context.Context) ([]index.Record, error) { return x.All(ctx) }

// Bring implements [Source].
func (x indexSource) Bring(ctx context.Context, key, dir string, vet index.Vet) (string, error) {
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
	wheel, err := x.Take(ctx, r, dir, vet)
	return wheel.Path, err
}

// Take brings what is published under the key of a cell into dir and verifies it by
// the policy of a channel: what is said about it before the rest is fetched.
func Take(ctx context.Context, from Source, key, dir string, trust signing.Trust, policy attest.Policy) (Bundle, error) {
	path, err := from.Bring(ctx, key, dir, Vet(key, trust, policy))
	if err != nil {
		return Bundle{}, err
	}
	return Load(path, trust, policy)
}

// maxUnsigned bounds a file whose size nobody signed, in bytes: statements from before
// 2026-11-22 say none.
const maxUnsigned = 4 << 30

// Vet admits of the files of a key those that statements name which verify, with the
// sizes that are signed. A file that nobody signed is refused, and keeps the others
// back: what a place adds to a cell is not of the cell.
func Vet(key string, trust signing.Trust, policy attest.Policy) index.Vet {
	return func(offered, said []artifact.Artifact) ([]artifact.Artifact, error) {
		wheel := offered[0]
		b, checks := attest.VerifyStatements(wheel, said, trust, policy)
		if err := attest.Faults(wheel.Name, checks); err != nil {
			return nil, err
		}
		if made := b.Provenance.Definition.Internal.Key; made != key {
			return nil, fmt.Errorf("it was built of another entry: key %s, wanted is %s", made, key)
		}
		signed := b.Announces(wheel)
		var faults []error
		for i, f := range offered {
			var err error
			if offered[i].Size, err = signedSize(f, signed); err != nil {
				faults = append(faults, diag.Errorf(diag.Gate, "%s: %w", wheel.Name, err))
			}
		}
		for _, s := range signed {
			if !slices.ContainsFunc(offered, func(f artifact.Artifact) bool { return f.Name == s.Name }) {
				faults = append(faults, diag.Errorf(diag.Publish, "%s: %s, which was made with it, is not there", wheel.Name, s.Name))
			}
		}
		return offered, errors.Join(faults...)
	}
}

// signedSize returns how many bytes an offered file may have.
func signedSize(f artifact.Artifact, signed []artifact.Artifact) (int64, error) {
	i := slices.IndexFunc(signed, func(s artifact.Artifact) bool { return s.Name == f.Name && s.SHA256 == f.SHA256 })
	switch {
	case i < 0:
		return 0, fmt.Errorf("%q with sha256 %s lies beside it, and nobody signed it", f.Name, f.SHA256)
	case signed[i].Size > 0 && f.Size > 0 && signed[i].Size != f.Size:
		return 0, fmt.Errorf("%s is said to have %d bytes, signed are %d", f.Name, f.Size, signed[i].Size)
	case signed[i].Size > 0:
		return signed[i].Size, nil
	case f.Size <= 0 || f.Size > maxUnsigned:
		return 0, fmt.Errorf("%s is said to have %d bytes, which nobody signed: it may have %d", f.Name, f.Size, int64(maxUnsigned))
	}
	return f.Size, nil
}

// FindCell returns what a place says of a cell, by its id or key.
func FindCell(ctx context.Context, at Source, name string) (index.Record, error) {
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
