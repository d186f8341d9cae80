package oci

import (
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

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/retry"
)

// errChanged is the error for a file with another size or digest than recorded.
var errChanged = errors.New("the file changed since it was measured")

// errLost is the error for content that the registry accepted and then lost.
var errLost = errors.New("the registry accepted the file and lost it")

// created is the time in manifests of a package or referrer without one. With the time of
// the call, the same package would get another digest each time.
const created = "1970-01-01T00:00:00Z"

// An upload is a package, or documents about one, on the way to a repository. It holds
// the manifests and opens the files.
type upload struct {
	*memory.Store
	r         *Repository
	root      ocispec.Descriptor // the manifest of the package
	referrers []ocispec.Descriptor
	blobs     []ocispec.Descriptor // the empty configuration and the files, each once
	files     map[digest.Digest]File
	doing     string // what is being sent
	sent      bool   // whether anything was sent
}

func (r *Repository) upload() *upload {
	return &upload{
		Store: memory.New(), r: r, doing: "the package",
		blobs: []ocispec.Descriptor{ocispec.DescriptorEmptyJSON}, files: map[digest.Digest]File{},
	}
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
		if _, seen := u.files[d.Digest]; !seen {
			u.files[d.Digest], u.blobs = f, append(u.blobs, d)
		}
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
// already in the registry and so continues an interrupted push. existed reports whether
// the registry had everything.
//
// Push sends all files first, including those of the referrers, and checks that the
// registry kept them. Then it sends the manifest, then the referrers. A visible package
// is therefore complete. Push does not store a file with another digest than recorded.
//
// Errors have the class [diag.Publish].
func (r *Repository) Push(ctx context.Context, p Package) (digest string, existed bool, err error) {
	u := r.upload()
	if err = u.pack(ctx, p); err == nil {
		err = u.send(ctx)
	}
	return u.root.Digest.String(), !u.sent, r.fail(ctx, diag.Publish, err, "pushing %s to %s", u.doing, r)
}

// Refer adds documents about a package in the repository. Like [Repository.Push], it
// sends their files first.
func (r *Repository) Refer(ctx context.Context, digest string, referrers []Referrer) (err error) {
	u := r.upload()
	if u.root, _, err = r.get(ctx, digest); err == nil {
		err = u.refer(ctx, referrers)
	}
	if err == nil {
		err = u.send(ctx)
	}
	return r.fail(ctx, diag.Publish, err, "pushing %s about %s to %s", u.doing, digest, r)
}

// send copies until everything is in the registry: files, then the manifest, then the
// referrers.
func (u *upload) send(ctx context.Context) error {
	return u.r.try(ctx, func(ctx context.Context) error {
		for _, d := range append(slices.Clip(u.blobs), u.root) {
			u.doing = cmp.Or(d.Annotations[ocispec.AnnotationTitle], "the manifest")
			if err := u.copy(ctx, d); err != nil {
				return err
			}
		}
		u.doing = "the referrers"
		return u.list(ctx)
	})
}

// copy sends one blob or manifest unless the registry has it, and checks that it kept it.
func (u *upload) copy(ctx context.Context, d ocispec.Descriptor) error {
	if has, err := u.isKept(ctx, d); has || err != nil {
		return err
	}
	if err := u.push(ctx, d); err != nil {
		return err
	}
	has, err := u.isKept(ctx, d)
	if err == nil && !has {
		err = retry.Temporary(errLost, 0) // one of several registries behind a name may be late
	}
	return err
}

// isKept reports whether the registry has a blob or manifest, of the same size.
func (u *upload) isKept(ctx context.Context, d ocispec.Descriptor) (bool, error) {
	find := u.r.repo.Blobs().Resolve
	if d.MediaType == ocispec.MediaTypeImageManifest {
		find = u.r.repo.Manifests().Resolve
	}
	found, err := find(ctx, d.Digest.String())
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	return err == nil && found.Size == d.Size, err
}

func (u *upload) push(ctx context.Context, d ocispec.Descriptor) error {
	u.sent = true
	from, err := u.Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer from.Close()
	return u.r.repo.Push(ctx, d, from)
}

// list sends the referrers missing in the package's list, and checks the list again:
// without the referrers API, publishers write the list themselves and may overwrite each
// other's entries.
func (u *upload) list(ctx context.Context) error {
	missing, err := u.unlisted(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	for _, d := range missing {
		if err := u.push(ctx, d); err != nil {
			return err
		}
	}
	if missing, err = u.unlisted(ctx); len(missing) > 0 && err == nil {
		err = retry.Temporary(fmt.Errorf("the registry accepted %d referrers and does not list them", len(missing)), 0)
	}
	return err
}

// unlisted returns the referrers missing in the package's list.
func (u *upload) unlisted(ctx context.Context) ([]ocispec.Descriptor, error) {
	if len(u.referrers) == 0 {
		return nil, nil
	}
	listed, err := u.r.list(ctx, u.root)
	return slices.DeleteFunc(slices.Clone(u.referrers), func(d ocispec.Descriptor) bool {
		return slices.ContainsFunc(listed, func(l ocispec.Descriptor) bool { return l.Digest == d.Digest })
	}), err
}
