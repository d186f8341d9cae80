package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	p.Referrers = slices.DeleteFunc(p.Referrers, func(ref oci.Referrer) bool { return has(said, ref.File.Name) })
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

// find returns the digest of the package with the given key, or [index.ErrNotPublished].
func (r Registry) find(ctx context.Context, key string) (digest string, err error) {
	digest, err = r.Resolve(ctx, keyTag(key))
	if isMissing(err) {
		return "", index.ErrNotPublished
	}
	return digest, err
}

// published returns the digest of the package with a key and its statements, or none if
// the repository lacks it. Statements of the first builder are not replaced if another
// builder publishes the same bytes.
func (r Registry) published(ctx context.Context, key string) (digest string, said []oci.File, err error) {
	digest, err = r.find(ctx, key)
	if errors.Is(err, index.ErrNotPublished) {
		return "", nil, nil
	}
	if err == nil {
		said, err = r.said(ctx, digest)
	}
	return digest, said, err
}

// said returns the statements about a package. It skips referrers of other types. Two
// publishers at once can leave a statement twice: one is enough.
func (r Registry) said(ctx context.Context, digest string) (said []oci.File, err error) {
	all, err := r.Referrers(ctx, digest)
	for _, ref := range all {
		for _, f := range ref.Files {
			if ref.ArtifactType == bundleType && !has(said, f.Name) {
				said = append(said, f)
			}
		}
	}
	return said, err
}

func has(files []oci.File, name string) bool {
	return slices.ContainsFunc(files, func(f oci.File) bool { return f.Name == name })
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

// bring copies the files of a package to dir and returns the path of its main file: the
// wheel or the archive.
func (r Registry) bring(ctx context.Context, m oci.Manifest, key, dir string, vet index.Vet) (string, error) {
	main := slices.IndexFunc(m.Files, func(f oci.File) bool { return filepath.Ext(f.Name) == ".whl" || f.MediaType == treeType })
	if main < 0 {
		return "", fmt.Errorf("%s@%s holds neither a wheel nor an archive of a tree", r, m.Digest)
	}
	files := slices.Concat(m.Files[main:main+1], m.Files[:main], m.Files[main+1:])
	path := filepath.Join(dir, files[0].Name)
	said, err := r.said(ctx, m.Digest)
	if err != nil {
		return "", err
	}
	local := func(in string, files []oci.File) (all []artifact.Artifact) {
		for _, f := range files {
			all = append(all, artifact.Artifact{Name: f.Name, Path: filepath.Join(in, f.Name), SHA256: f.SHA256, Size: f.Size, Key: key})
		}
		return all
	}
	return path, index.Bring(local(dir, files), local(attest.Dir(path), said), vet, func(a artifact.Artifact) error {
		return r.Fetch(ctx, fileOf(a, besideType), filepath.Dir(a.Path))
	})
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
