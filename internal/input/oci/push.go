package oci

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

// errChanged is the error for a file with another size or digest than recorded.
var errChanged = errors.New("the file changed since it was measured")

// created is the time in manifests of a package or referrer without one. With the time of
// the call, the same package would get another digest each time.
const created = "1970-01-01T00:00:00Z"

// An upload is a package, or documents about one, on the way to a repository. It holds
// the manifests and opens the files.
type upload struct {
	*memory.Store
	to        *remote.Repository
	root      ocispec.Descriptor // the manifest of the package
	referrers []ocispec.Descriptor
	files     map[digest.Digest]File
	doing     string // what is being sent
}

func newUpload(to *remote.Repository) *upload {
	return &upload{Store: memory.New(), to: to, doing: "the package", files: map[digest.Digest]File{}}
}

// pack adds the manifests of a package. The same package gives the same bytes: they hold
// nothing of the host.
func (u *upload) pack(ctx context.Context, p Package) (err error) {
	if len(p.Files) == 0 {
		return errors.New("the package has no files")
	}
	u.root, err = u.manifest(ctx, p.ArtifactType, p.Files, p.Annotations, nil)
	if err != nil {
		return err
	}
	return u.refer(ctx, p.Referrers)
}

// refer adds documents about the package.
func (u *upload) refer(ctx context.Context, referrers []Referrer) error {
	if len(referrers) > maxReferrers {
		return fmt.Errorf("the package has %d referrers, more than %d", len(referrers), maxReferrers)
	}
	for _, r := range referrers {
		d, err := u.manifest(ctx, r.ArtifactType, []File{r.File}, r.Annotations, &u.root)
		if err != nil {
			return fmt.Errorf("the referrer %q: %w", r.File.Name, err)
		}
		u.referrers = append(u.referrers, d)
	}
	return nil
}

// manifest adds a manifest in the layout of ORAS: an empty configuration and one layer
// per file with its name as the title. It refuses what a pull would refuse.
func (u *upload) manifest(ctx context.Context, artifactType string, files []File, notes map[string]string, subject *ocispec.Descriptor) (ocispec.Descriptor, error) {
	o := oras.PackManifestOptions{Subject: subject, ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: created}}
	maps.Copy(o.ManifestAnnotations, notes)
	for _, f := range files {
		d := f.descriptor()
		o.Layers = append(o.Layers, d)
		u.files[d.Digest] = f
	}
	d, err := oras.PackManifest(ctx, u.Store, oras.PackManifestVersion1_1, artifactType, o)
	if err != nil {
		return d, err
	}
	data, err := content.FetchAll(ctx, u.Store, d)
	if err == nil {
		_, err = read(data)
	}
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, err
}

// Fetch opens a manifest or a file.
func (u *upload) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	f, isFile := u.files[d.Digest]
	if !isFile {
		return u.Store.Fetch(ctx, d)
	}
	file, err := regular.Follow(f.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	return &checked{file, content.NewVerifyReader(file, d), d.Size}, nil
}

// checked reads a file of a known size and digest. It returns the last bytes only if the
// whole content is right, so that a registry never gets all of a changed file.
type checked struct {
	io.Closer
	verify *content.VerifyReader
	left   int64
}

// Read implements [io.Reader].
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.verify.Read(p)
	c.left -= int64(n)
	if n > 0 && c.left == 0 {
		err = c.verify.Verify()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: %v", errChanged, err) //nolint:errorlint // the end of a file is no broken connection
	}
	return n, err
}

// Push stores a package and returns the digest of its manifest. It skips content
// already in the registry and so continues an interrupted push. It sends the files first,
// then the manifest, then the referrers in the same order. Push does not store a file with
// another digest than recorded.
//
// Errors have the class [diag.Publish].
func (r *Repository) Push(ctx context.Context, p Package) (digest string, err error) {
	u := newUpload(r.repo)
	if err = u.pack(ctx, p); err == nil {
		err = try(ctx, r.policy, func(ctx context.Context) error {
			if err := u.copy(ctx, u.root); err != nil {
				return err
			}
			return u.list(ctx)
		})
	}
	return u.root.Digest.String(), r.fail(ctx, diag.Publish, err, "pushing %s to %s", u.doing, r)
}

// Refer adds documents about a package in the repository.
func (r *Repository) Refer(ctx context.Context, digest string, referrers []Referrer) (err error) {
	u := newUpload(r.repo)
	if u.root, _, err = r.get(ctx, digest); err == nil {
		err = u.refer(ctx, referrers)
	}
	if err == nil {
		err = try(ctx, r.policy, u.list)
	}
	return r.fail(ctx, diag.Publish, err, "pushing %s about %s to %s", u.doing, digest, r)
}

// copy sends a blob, or a manifest after what it names, unless the registry has it.
func (u *upload) copy(ctx context.Context, d ocispec.Descriptor) error {
	return oras.CopyGraph(ctx, u, u.to, d, oras.CopyGraphOptions{
		Concurrency: 1, // for errors that name the file
		PreCopy: func(_ context.Context, d ocispec.Descriptor) error {
			u.doing = cmp.Or(d.Annotations[ocispec.AnnotationTitle], "the manifest")
			return nil
		},
	})
}

// list sends the referrers missing in the package's list, and checks the list again:
// without the referrers API, publishers write the list themselves and may overwrite each
// other's entries.
func (u *upload) list(ctx context.Context) error {
	missing, err := u.unlisted(ctx)
	for _, d := range missing {
		if err == nil {
			err = u.attach(ctx, d)
		}
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	if missing, err = u.unlisted(ctx); len(missing) > 0 && err == nil {
		err = retry.Temporary(fmt.Errorf("the registry accepted %d referrers and does not list them", len(missing)), 0)
	}
	return err
}

// attach sends a referrer after its file. It sends the manifest even if the registry has
// it, because only then the registry lists it.
func (u *upload) attach(ctx context.Context, d ocispec.Descriptor) error {
	parts, err := content.Successors(ctx, u, d)
	for _, part := range parts {
		if err == nil {
			err = u.copy(ctx, part)
		}
	}
	if err != nil {
		return err
	}
	u.doing = "the referrers"
	manifest, err := u.Fetch(ctx, d)
	if err != nil {
		return err
	}
	return u.to.Push(ctx, d, manifest)
}

// unlisted returns the referrers missing in the package's list.
func (u *upload) unlisted(ctx context.Context) ([]ocispec.Descriptor, error) {
	if len(u.referrers) == 0 {
		return nil, nil
	}
	listed, err := listReferrers(ctx, u.to, u.root)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(u.referrers), func(d ocispec.Descriptor) bool {
		return slices.ContainsFunc(listed, func(l ocispec.Descriptor) bool { return l.Digest == d.Digest })
	}), nil
}

// Tag sets a tag to a digest in the repository. If the tag names other content, Tag
// leaves it unchanged and returns an error, unless move is set. Registries have no
// compare-and-set: of two publishers at the same moment the later wins.
func (r *Repository) Tag(ctx context.Context, digest, tag string, move bool) (err error) {
	defer func() { err = r.fail(ctx, diag.Publish, err, "tagging %s as %q in %s", digest, tag, r) }()
	if err := errors.Join(CheckDigest(digest), checkTag(tag)); err != nil {
		return err
	}
	have, _, err := r.get(ctx, tag)
	switch {
	case err != nil && !errors.Is(err, errdef.ErrNotFound):
		return err
	case err == nil && have.Digest.String() == digest:
		return nil
	case err == nil && !move:
		return fmt.Errorf("%w: %s is %s, not %s", errTaken, tag, have.Digest, digest)
	}
	d, data, err := r.get(ctx, digest)
	if err != nil {
		return err
	}
	return try(ctx, r.policy, func(ctx context.Context) error { return r.repo.PushReference(ctx, d, bytes.NewReader(data), tag) })
}
