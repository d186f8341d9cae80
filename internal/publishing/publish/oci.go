package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/oci"
	"builder/internal/plan/lock"
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

// Media types of files in a registry.
const (
	cellType   = "application/vnd.builder.cell.v1"
	wheelType  = "application/vnd.builder.wheel.v1+zip"
	treeType   = "application/vnd.builder.tree.v1"
	besideType = "application/octet-stream"
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// Annotations. Only the signed files count as evidence. cosign reads the names in
// dev.sigstore.
const (
	cellNote    = "org.builder.cell"
	keyNote     = "org.builder.key"
	contentNote = "dev.sigstore.bundle.content"
	saysNote    = "dev.sigstore.bundle.predicateType"
)

// ociPackage returns the bundle as a package for a registry.
func (b Bundle) ociPackage() oci.Package {
	p := oci.Package{
		ArtifactType: cellType,
		Files:        []oci.File{fileOf(b.Wheel, wheelType)},
		Annotations:  map[string]string{cellNote: b.Entry.ID, keyNote: b.Entry.Key()},
		Referrers:    referrersOf(b.Said),
	}
	if b.isTree() {
		p.Files[0].MediaType = treeType
	}
	for _, a := range b.Beside {
		p.Files = append(p.Files, fileOf(a, besideType))
	}
	return p
}

// referrersOf returns statements as referrers of their package.
func referrersOf(said []attest.Document) (all []oci.Referrer) {
	for _, d := range said {
		all = append(all, oci.Referrer{
			ArtifactType: bundleType, File: fileOf(d.Artifact, bundleType),
			Annotations: map[string]string{contentNote: "dsse-envelope", saysNote: d.PredicateType},
		})
	}
	return all
}

func fileOf(a artifact.Artifact, mediaType string) oci.File {
	return oci.File{Path: a.Path, Name: a.Name, MediaType: mediaType, SHA256: a.SHA256, Size: a.Size}
}

// maxTag is the maximum length of a tag, in bytes (distribution specification).
const maxTag = 128

// tagOf returns the tag for a name. Tags cannot contain a plus sign. A name longer than
// a tag is truncated and ends in a digest of the whole name.
func tagOf(name string) string {
	tag := strings.ReplaceAll(name, "+", "_")
	if len(tag) <= maxTag {
		return tag
	}
	end := "-" + regular.Sum([]byte(name))[:16]
	return tag[:maxTag-len(end)] + end
}

// channelTag returns the tag of a cell in a channel. It moves.
func channelTag(cell, channel string) string { return tagOf(cell + "-" + channel) }

func keyTag(key string) string { return "key-" + key }

// A Digest is a publication in a registry, known by the digest of its manifest.
type Digest struct {
	Registry
	digest string // sha256:HEX
}

// Digests describes the syntax of a digest.
const Digests = "oci://HOST/REPOSITORY@sha256:DIGEST"

// InRegistry reports whether a path of the user names a publication in a registry.
func InRegistry(path string) bool { return strings.HasPrefix(path, oci.Scheme) }

// OpenDigest parses the address of a publication. It contacts no registry.
func OpenDigest(text string, insecure bool) (Digest, error) {
	place, digest, _ := strings.Cut(text, "@")
	if err := oci.CheckDigest(digest); err != nil {
		return Digest{}, diag.Errorf(diag.Usage, "the address of a publication needs a digest: %w", err).
			WithHint("write %s, as `builder publish` prints it; a tag can move", Digests)
	}
	r, err := openRegistry(place, insecure)
	return Digest{r, digest}, err
}

// String returns the address as users write it.
func (d Digest) String() string { return d.Registry.String() + "@" + d.digest }

// Pull copies the publication to dir, in the layout of a run with its entry, and returns
// the path of its wheel or archive. Only files listed in signed statements are copied. One
// other file is an error, and then none is. Without a policy the verdicts are not checked.
func (d Digest) Pull(ctx context.Context, dir string, trust signing.Trust, policy attest.Policy) (path string, err error) {
	m, err := d.Manifest(ctx, d.digest)
	if err != nil {
		return "", err
	}
	var said attest.Bundle
	key := m.Annotations[keyNote]
	path, err = d.bring(ctx, m, key, dir, vet(key, trust, policy, &said))
	if err != nil {
		return "", err
	}
	return path, lock.WriteEntry(dir, said.Provenance.Definition.Internal.Entry)
}

// Attach adds the statements beside a pulled artifact to those in the registry. Statements
// already there stay.
func (d Digest) Attach(ctx context.Context, a artifact.Artifact, trust signing.Trust) error {
	beside, err := attest.Read(a, trust)
	if err != nil {
		return err
	}
	there, err := d.said(ctx, d.digest)
	if err != nil {
		return refused(err)
	}
	missing := slices.DeleteFunc(beside.Documents, func(d attest.Document) bool { return has(there, d.Name) })
	if len(missing) == 0 {
		return nil
	}
	return d.Refer(ctx, d.digest, referrersOf(missing))
}
