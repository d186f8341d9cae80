package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

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

// errLost is the error for content that the registry accepted and then lost.
var errLost = errors.New("the registry accepted the file and lost it")

// created is the time in manifests of a package or referrer without one. With the time of
// the call, the same package would get another digest each time.
const created = "1970-01-01T00:00:00Z"

// A source holds the manifests of a package and of documents about it, as oras copies
// them, and opens their files.
type source struct {
	*memory.Store
	root      ocispec.Descriptor // the manifest of the package
	referrers []ocispec.Descriptor
	blobs     []ocispec.Descriptor // the empty configuration and the files, each once
	files     map[digest.Digest]File
	moved     func(read int64)
}

func newSource() *source {
	return &source{Store: memory.New(), blobs: []ocispec.Descriptor{ocispec.DescriptorEmptyJSON}, files: map[digest.Digest]File{}}
}

// pack returns the source of a package. The same package gives the same bytes: they hold
// nothing of the host.
func pack(ctx context.Context, p Package) (*source, error) {
	s := newSource()
	var err error
	if len(p.Files) == 0 {
		return nil, errors.New("the package has no files")
	}
	if s.root, err = s.manifest(ctx, p.ArtifactType, p.Files, p.Annotations, nil); err != nil {
		return nil, err
	}
	return s, s.refer(ctx, p.Referrers)
}

// refer adds documents about the package.
func (s *source) refer(ctx context.Context, referrers []Referrer) error {
	if len(referrers) > maxReferrers {
		return fmt.Errorf("the package has %d referrers, more than %d", len(referrers), maxReferrers)
	}
	for _, r := range referrers {
		d, err := s.manifest(ctx, r.ArtifactType, []File{r.File}, r.Annotations, &s.root)
		if err != nil {
			return fmt.Errorf("the referrer %q: %w", r.File.Name, err)
		}
		s.referrers = append(s.referrers, d)
	}
	return nil
}

// manifest adds a manifest in the layout of ORAS: an empty configuration and one layer
// per file with its name as the title. It refuses what a pull would refuse.
func (s *source) manifest(ctx context.Context, artifactType string, files []File, notes map[string]string, subject *ocispec.Descriptor) (ocispec.Descriptor, error) {
	o := oras.PackManifestOptions{Subject: subject, ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: created}}
	maps.Copy(o.ManifestAnnotations, notes)
	for _, f := range files {
		d := f.descriptor()
		o.Layers = append(o.Layers, d)
		if _, seen := s.files[d.Digest]; !seen {
			s.files[d.Digest], s.blobs = f, append(s.blobs, d)
		}
	}
	d, err := oras.PackManifest(ctx, s.Store, oras.PackManifestVersion1_1, artifactType, o)
	if err != nil {
		return d, err
	}
	data, err := content.FetchAll(ctx, s.Store, d)
	if err == nil {
		_, err = read(data)
	}
	return ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, err
}

// name returns the name of a blob for messages.
func (s *source) name(d ocispec.Descriptor) string {
	if f, isFile := s.files[d.Digest]; isFile {
		return f.Name
	}
	return "the empty configuration"
}

// Fetch implements [content.Fetcher].
func (s *source) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	f, isFile := s.files[d.Digest]
	if !isFile {
		return s.Store.Fetch(ctx, d)
	}
	file, err := regular.Follow(f.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	return &checked{file, content.NewVerifyReader(file, d), 0, d.Size, s.moved}, nil
}

// checked reads a file of a known size and digest. It returns the last bytes only if the
// whole content is right, so that a registry never gets all of a changed file.
type checked struct {
	io.Closer
	verify     *content.VerifyReader
	read, size int64
	moved      func(read int64)
}

// Read implements [io.Reader].
func (c *checked) Read(p []byte) (int, error) {
	n, err := c.verify.Read(p)
	c.read += int64(n)
	if n > 0 && c.read == c.size {
		err = c.verify.Verify()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%w: %v", errChanged, err) //nolint:errorlint // the end of a file is no broken connection
	}
	c.moved(c.read)
	return n, err
}

// A target is a repository as the target of a copy. Content of another size does not
// exist there.
type target struct{ *remote.Repository }

// Exists implements [content.ReadOnlyStorage].
func (t target) Exists(ctx context.Context, d ocispec.Descriptor) (bool, error) {
	find := t.Blobs().Resolve
	if d.MediaType == ocispec.MediaTypeImageManifest {
		find = t.Manifests().Resolve
	}
	found, err := find(ctx, d.Digest.String())
	if errors.Is(err, errdef.ErrNotFound) {
		return false, nil
	}
	return err == nil && found.Size == d.Size, err
}

// Push stores a package and returns the digest of its manifest. It skips content
// already in the registry and so continues an interrupted push. existed reports whether
// the registry had everything.
//
// Push sends all files first, including those of the referrers, and checks that the
// registry kept them. Then it sends the manifest, then the referrers. A visible package
// is therefore complete. Push does not store a file with another digest than recorded.
//
// progress receives bytes and may be nil; done decreases if a file is sent again.
// Errors have the class [diag.Publish].
func (r *Repository) Push(ctx context.Context, p Package, progress func(done, total int64)) (digest string, existed bool, err error) {
	from, err := pack(ctx, p)
	if err != nil {
		return "", false, r.fail(ctx, diag.Publish, err, "pushing to %s", r)
	}
	s := &sending{r: r, from: from, progress: progress}
	if err := s.send(ctx); err != nil {
		return "", false, err
	}
	return from.root.Digest.String(), !s.sent, nil
}

// Refer adds documents about a package in the repository. Like [Repository.Push], it
// sends their files first.
func (r *Repository) Refer(ctx context.Context, digest string, referrers []Referrer) error {
	from := newSource()
	d, _, err := r.get(ctx, digest)
	if err == nil {
		from.root = d
		err = from.refer(ctx, referrers)
	}
	if err != nil {
		return r.fail(ctx, diag.Publish, err, "adding documents about %s to %s", digest, r)
	}
	return (&sending{r: r, from: from}).send(ctx)
}

// sending is the state of one push.
type sending struct {
	r        *Repository
	from     *source
	progress func(done, total int64)
	sent     bool   // whether anything was sent
	doing    string // what is being sent

	mu            sync.Mutex // the HTTP client may still read after its request has ended
	before, total int64      // bytes of the files before this one, and of all
}

// start reports the bytes of the files that are done.
func (s *sending) start(before int64) {
	s.mu.Lock()
	s.before = before
	s.mu.Unlock()
	s.moved(0)
}

// moved reports bytes of the present file.
func (s *sending) moved(read int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress != nil {
		s.progress(s.before+read, s.total)
	}
}

// send copies the source until everything is in the registry.
func (s *sending) send(ctx context.Context) error {
	for _, d := range s.from.blobs {
		s.total += d.Size
	}
	s.from.moved = s.moved
	_, err := try(ctx, s.r, func(ctx context.Context) (bool, error) { return true, s.attempt(ctx) })
	return s.r.fail(ctx, diag.Publish, err, "pushing %s to %s", s.doing, s.r)
}

// attempt sends what the registry lacks: files, then the manifest, then the referrers.
func (s *sending) attempt(ctx context.Context) error {
	before := int64(0)
	for _, d := range s.from.blobs {
		s.doing = s.from.name(d)
		s.start(before)
		if err := s.copy(ctx, d); err != nil {
			return err
		}
		before += d.Size
	}
	s.start(before)
	s.doing = "the manifest"
	if err := s.copy(ctx, s.from.root); err != nil {
		return err
	}
	s.doing = "the referrers of " + s.from.root.Digest.String()
	return s.list(ctx)
}

// copy sends one blob or manifest unless the registry has it, and checks that it kept it.
func (s *sending) copy(ctx context.Context, d ocispec.Descriptor) error {
	to := target{s.r.repo}
	return oras.CopyGraph(ctx, s.from, to, d, oras.CopyGraphOptions{
		FindSuccessors: func(context.Context, content.Fetcher, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
			return nil, nil
		},
		PreCopy: func(context.Context, ocispec.Descriptor) error {
			s.sent = true
			return nil
		},
		PostCopy: func(ctx context.Context, d ocispec.Descriptor) error {
			kept, err := to.Exists(ctx, d)
			if err == nil && !kept {
				return retry.Temporary(errLost, 0) // one of several registries behind a name may be late
			}
			return err
		},
	})
}

// list sends the referrers missing in the package's list, and checks the list again:
// without the referrers API, publishers write the list themselves and may overwrite each
// other's entries.
func (s *sending) list(ctx context.Context) error {
	missing, err := s.unlisted(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	s.sent = true
	for _, d := range missing {
		data, err := content.FetchAll(ctx, s.from, d)
		if err != nil {
			return err
		}
		if err := s.r.repo.Push(ctx, d, bytes.NewReader(data)); err != nil {
			return err
		}
	}
	missing, err = s.unlisted(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	return retry.Temporary(fmt.Errorf("the registry accepted %d referrers and does not list them", len(missing)), 0)
}

// unlisted returns the referrers missing in the package's list.
func (s *sending) unlisted(ctx context.Context) ([]ocispec.Descriptor, error) {
	if len(s.from.referrers) == 0 {
		return nil, nil
	}
	listed, err := s.r.list(ctx, s.from.root)
	return slices.DeleteFunc(slices.Clone(s.from.referrers), func(d ocispec.Descriptor) bool {
		return slices.ContainsFunc(listed, func(l ocispec.Descriptor) bool { return l.Digest == d.Digest })
	}), err
}
