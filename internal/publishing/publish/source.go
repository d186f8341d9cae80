package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
)

// A Source is a place with published cells.
type Source interface {
	// Bring copies the publication of a key to dir, in the layout of a run, and returns
	// the path of the wheel. It returns [index.ErrNotPublished] if the place has none. It
	// copies the statements about the wheel first, then the files admitted by vet.
	// [Load] decides whether to trust the result.
	Bring(ctx context.Context, key, dir string, vet index.Vet) (wheel string, err error)
	String() string
}

// An Index is a source that lists its wheels: a directory, or its copy behind a web server.
type Index interface {
	Source
	// List returns the records of the index, unverified.
	List(ctx context.Context) ([]index.Record, error)
}

var (
	_ Index  = index.Remote{}
	_ Index  = Directory{}
	_ Source = Registry{}
)

// Verified returns a [Taker] that verifies by the policy of a channel. It verifies the
// statements before the other files are fetched.
func Verified(trust signing.Trust, policy attest.Policy) Taker {
	return func(key string, bring func(index.Vet) (string, error)) (Bundle, error) {
		path, err := bring(vet(key, trust, policy, new(attest.Bundle)))
		if err != nil {
			return Bundle{}, err
		}
		return Load(path, trust, policy)
	}
}

// Take copies the publication of a key to dir and verifies it by the policy of a channel.
func Take(ctx context.Context, from Source, key, dir string, trust signing.Trust, policy attest.Policy) (Bundle, error) {
	return Verified(trust, policy)(key, func(vet index.Vet) (string, error) { return from.Bring(ctx, key, dir, vet) })
}

// bringStatements copies the statements about the artifact of a key to dir, unverified.
func bringStatements(ctx context.Context, from Source, key, dir string) (said []artifact.Artifact, err error) {
	enough := errors.New("the statements are enough")
	_, err = from.Bring(ctx, key, dir, func(_, brought []artifact.Artifact) ([]artifact.Artifact, error) {
		said = brought
		return nil, enough
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return said, err
}

// vet admits the files of a key listed in verified statements, with their signed sizes, and
// stores the statements in said. One unsigned file is enough to refuse all, because a file
// added by the place is not part of the cell.
func vet(key string, trust signing.Trust, policy attest.Policy, said *attest.Bundle) index.Vet {
	return func(offered, files []artifact.Artifact) ([]artifact.Artifact, error) {
		wheel := offered[0]
		b, checks := attest.VerifyStatements(wheel, files, trust, policy)
		*said = b
		if err := attest.Faults(wheel.Name, checks); err != nil {
			return nil, err
		}
		return admitted(offered, key, b)
	}
}

// admitted returns the files of a key with the sizes that verified statements give them.
func admitted(offered []artifact.Artifact, key string, b attest.Bundle) ([]artifact.Artifact, error) {
	if made := b.Provenance.Definition.Internal.Key; made != key {
		return nil, fmt.Errorf("it was built from another entry: key %s, expected %s", made, key)
	}
	wheel := offered[0]
	var errs []error
	for i, f := range offered {
		var err error
		if offered[i].Size, err = signedSize(f, b.Artifacts); err != nil {
			errs = append(errs, diag.Errorf(diag.Gate, "%s: %w", wheel.Name, err))
		}
	}
	for _, s := range b.Artifacts {
		if !slices.ContainsFunc(offered, func(f artifact.Artifact) bool { return f.Name == s.Name }) {
			errs = append(errs, diag.Errorf(diag.Publish, "%s: %s of the same cell is missing", wheel.Name, s.Name))
		}
	}
	return offered, errors.Join(errs...)
}

// signedSize returns the size an offered file must have, in bytes.
func signedSize(f artifact.Artifact, signed []attest.Subject) (int64, error) {
	i := slices.IndexFunc(signed, func(s attest.Subject) bool { return s.Name == f.Name && s.Digest["sha256"] == f.SHA256 })
	if i < 0 {
		return 0, fmt.Errorf("the file %q beside it, with sha256 %s, is unsigned", f.Name, f.SHA256)
	}
	size := signed[i].Annotations.Size
	switch {
	case size <= 0:
		return 0, fmt.Errorf("%s: its statement has no size", f.Name)
	case f.Size > 0 && size != f.Size:
		return 0, fmt.Errorf("%s: the source lists %d bytes, the signed size is %d", f.Name, f.Size, size)
	}
	return size, nil
}

// Statements finds the statements about artifacts in the places of --from, by digest.
type Statements struct {
	from    []listed
	scratch string
}

// listed is an index with its list.
type listed struct {
	Index
	records []index.Record
}

// OpenStatements opens the places of --from. Files from an index on the network go through
// the store. Statements lie below scratch.
func OpenStatements(ctx context.Context, from []string, kept *store.Store, scratch string) (Statements, error) {
	s := Statements{scratch: scratch}
	for _, text := range from {
		source, err := Open[Index](text, Options{Store: kept})
		if err != nil {
			return s, diag.Errorf(diag.Usage, "--from: %w", err)
		}
		records, err := source.List(ctx)
		if err != nil {
			return s, err
		}
		s.from = append(s.from, listed{source, records})
	}
	return s, nil
}

// Of fetches the statements about an artifact and returns their folder.
func (s Statements) Of(ctx context.Context, a artifact.Artifact) (folder string, err error) {
	var others []string
	for _, at := range s.from {
		for _, r := range at.records {
			if r.SHA256 == a.SHA256 {
				return s.bring(ctx, a, at, r)
			}
			if r.Filename == a.Name {
				others = append(others, fmt.Sprintf("%s has it with sha256 %s", at, r.SHA256))
			}
		}
	}
	if len(others) > 0 {
		return "", diag.Errorf(diag.Gate, "%s has sha256 %s, and %s", a.Name, a.SHA256, strings.Join(others, ", ")).
			WithHint("it is another file of the same name: install the published one by its digest (pip --require-hashes)")
	}
	return "", diag.Errorf(diag.Gate, "%s: no place of --from has a file with its sha256 %s", a.Name, a.SHA256).
		WithHint("name the place where it is published; to examine a wheel of another project, run `builder gate FILE`")
}

// bring fetches the statements of a record about an artifact.
func (s Statements) bring(ctx context.Context, a artifact.Artifact, at listed, r index.Record) (folder string, err error) {
	dir, err := os.MkdirTemp(s.scratch, "*")
	if err != nil {
		return "", err
	}
	said, err := bringStatements(ctx, at, r.Key, dir)
	if err == nil && len(said) == 0 {
		err = errors.New("it has no statements about the file")
	}
	if err != nil && ctx.Err() == nil {
		hint := "ask who publishes there, and do not use the file before you know the reason"
		if errors.Is(err, index.ErrYanked) {
			hint = "do not use it; ask its publisher for another version"
		}
		err = diag.Errorf(diag.Gate, "%s: %s: %w", a.Name, at, err).WithHint("%s", hint)
	}
	return filepath.Join(dir, attest.Dir(r.Filename)), err
}
