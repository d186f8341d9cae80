package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/input/oci"
	"builder/internal/publishing/index"
)

// Registry is a repository of an OCI registry. The files of a cell form one package,
// and the statements about the wheel are its referrers. Tags name the cell, its key,
// and its place in a channel.
type Registry struct{ *oci.Repository }

func openRegistry(text string, insecure bool) (Registry, error) {
	repo, err := oci.OpenRepository(text, oci.Options{Insecure: insecure})
	return Registry{repo}, err
}

// Put implements [Destination]. It verifies the package by its digest before a tag names it:
// nobody finds a package without tags.
func (r Registry) Put(ctx context.Context, b Bundle, channel string, take Taker) (Receipt, error) {
	p := b.ociPackage()
	before, said, err := r.published(ctx, b.Entry.Key())
	if err != nil {
		return Receipt{}, refused(err)
	}
	p.Referrers = slices.DeleteFunc(p.Referrers, func(ref oci.Referrer) bool { return said[ref.File.Name] })
	digest, err := r.Push(ctx, p)
	if err != nil {
		return Receipt{}, err
	}
	var by []string
	if take != nil {
		by, err = take.pull(b, b.Entry.Key(), func(dir string, vet index.Vet) (string, error) {
			return r.bringDigest(ctx, digest, b.Entry.Key(), dir, vet)
		})
		if err != nil {
			return Receipt{}, err
		}
	}
	for _, tag := range []string{tagOf(b.Entry.ID), keyTag(b.Entry.Key())} {
		if err := r.Tag(ctx, digest, tag, false); err != nil {
			return Receipt{}, err
		}
	}
	err = r.Tag(ctx, digest, channelTag(b.Entry.ID, channel), true)
	receipt := b.Receipt(channel, r.String()+"@"+digest, before == digest)
	receipt.Checked = by
	if receipt.Existed {
		receipt.More = len(p.Referrers)
	}
	return receipt, err
}

// refused changes the class of an error to publishing, because the failed read was part
// of a publication.
func refused(err error) error {
	if e, ok := errors.AsType[*diag.Error](err); ok {
		own := *e
		own.Code = diag.Publish
		return &own
	}
	return err
}

// find returns the digest of the package with the given key, or [ErrNotPublished].
func (r Registry) find(ctx context.Context, key string) (digest string, err error) {
	digest, err = r.Resolve(ctx, keyTag(key))
	if isMissing(err) {
		return "", ErrNotPublished
	}
	return digest, err
}

// published returns the digest of the package with a key and the names of its statements,
// or none if the repository lacks it. Statements of the first builder are not replaced if
// another builder publishes the same bytes.
func (r Registry) published(ctx context.Context, key string) (digest string, said map[string]bool, err error) {
	digest, err = r.find(ctx, key)
	if errors.Is(err, ErrNotPublished) {
		return "", nil, nil
	}
	if err == nil {
		said, err = r.said(ctx, digest)
	}
	return digest, said, err
}

// said returns the names of the statements about a package.
func (r Registry) said(ctx context.Context, digest string) (map[string]bool, error) {
	all, err := r.Referrers(ctx, digest)
	names := map[string]bool{}
	for _, ref := range all {
		for _, f := range ref.Files {
			names[f.Name] = true
		}
	}
	return names, err
}

// Bring implements [Source].
func (r Registry) Bring(ctx context.Context, key, dir string, vet index.Vet) (string, error) {
	digest, err := r.find(ctx, key)
	if err != nil {
		return "", err
	}
	return r.bringDigest(ctx, digest, key, dir, vet)
}

func (r Registry) bringDigest(ctx context.Context, digest, key, dir string, vet index.Vet) (string, error) {
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return "", err
	}
	return r.bring(ctx, m, key, dir, vet)
}

// bring copies the files of a package to dir and returns the path of its main file.
func (r Registry) bring(ctx context.Context, m oci.Manifest, key, dir string, vet index.Vet) (string, error) {
	found, ok := artifactOf(m)
	if !ok {
		return "", fmt.Errorf("%s@%s holds neither a wheel nor an archive of a tree", r, m.Digest)
	}
	path := filepath.Join(dir, found.Name)
	said, err := r.bringSaid(ctx, m.Digest, attest.Dir(path))
	if err != nil {
		return "", err
	}
	files := append([]oci.File{found}, slices.DeleteFunc(m.Files, func(f oci.File) bool { return f.Name == found.Name })...)
	offered := make([]artifact.Artifact, len(files))
	for i, f := range files {
		offered[i] = artifact.Artifact{Name: f.Name, Path: filepath.Join(dir, f.Name), SHA256: f.SHA256, Size: f.Size, Key: key}
	}
	if offered, err = vet(offered, said); err != nil {
		return "", err
	}
	for i, a := range offered {
		files[i].Size = a.Size
		if err := r.Fetch(ctx, files[i], dir); err != nil {
			return "", err
		}
	}
	return path, nil
}

// artifactOf returns the main file of a package: its wheel or archive.
func artifactOf(m oci.Manifest) (oci.File, bool) {
	i := slices.IndexFunc(m.Files, func(f oci.File) bool { return filepath.Ext(f.Name) == ".whl" || f.MediaType == treeType })
	if i < 0 {
		return oci.File{}, false
	}
	return m.Files[i], true
}

// maxSaid limits the statements about a package, in bytes. They are unverified when
// they arrive.
const maxSaid = 128 << 20

// bringSaid copies the statements about a package to dir and returns them. It skips
// referrers of other types.
func (r Registry) bringSaid(ctx context.Context, digest, dir string) (said []artifact.Artifact, err error) {
	all, err := r.Referrers(ctx, digest)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	left := int64(maxSaid)
	for _, ref := range all {
		if ref.ArtifactType != bundleType {
			continue
		}
		for _, f := range ref.Files {
			if slices.ContainsFunc(said, func(a artifact.Artifact) bool { return a.Name == f.Name }) {
				continue // two publishers at once: one statement is enough
			}
			if left -= f.Size; left < 0 {
				return nil, fmt.Errorf("the statements about %s@%s have more than %d bytes", r, digest, maxSaid)
			}
			if err := r.Fetch(ctx, f, dir); err != nil {
				return nil, err
			}
			said = append(said, artifact.Artifact{Name: f.Name, Path: filepath.Join(dir, f.Name)})
		}
	}
	return said, nil
}

// Find implements [Catalogue]. It knows a cell by the tags of [Registry.Put].
func (r Registry) Find(ctx context.Context, cell string) (Published, error) {
	tag := tagOf(cell)
	if sum, err := hex.DecodeString(cell); err == nil && len(sum) == sha256.Size {
		tag = keyTag(cell)
	}
	digest, err := r.Resolve(ctx, tag)
	if isMissing(err) {
		return Published{}, notThere(r, cell, nil)
	}
	if err != nil {
		return Published{}, err
	}
	m, err := r.Manifest(ctx, digest)
	if err != nil {
		return Published{}, err
	}
	if m.ArtifactType != cellType {
		return Published{}, diag.Errorf(diag.Fetch, "%s@%s has the tag of a published cell, but is not one", r, digest).WithHint("remove the tag %s", tag)
	}
	found := Published{Cell: m.Annotations[cellNote], Key: m.Annotations[keyNote]}
	for _, channel := range attest.Policies() {
		at, err := r.Resolve(ctx, channelTag(found.Cell, channel))
		switch {
		case err != nil && !isMissing(err):
			return Published{}, err
		case err == nil && at == digest:
			found.Channels = append(found.Channels, channel)
		}
	}
	return found, nil
}

func isMissing(err error) bool { return errors.Is(err, oci.ErrAbsent) }
