package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// errChanged is the error for a file with another size or digest than recorded.
var errChanged = errors.New("the file changed since it was measured")

// errLost is the error for a blob that the registry accepted and then lost.
var errLost = errors.New("the registry accepted the file and lost it")

// rounds bounds the attempts to add referrers to a package's list. Without the
// referrers API, publishers write the list themselves and may overwrite each other's
// entries.
const rounds = 6

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
	parts, err := pack(p)
	if err != nil {
		return "", false, r.fail(ctx, diag.Publish, err, "pushing to %s", r)
	}
	s := &sending{r: r, progress: progress}
	if err := s.blobs(ctx, parts); err != nil {
		return "", false, err
	}
	if err := s.manifest(ctx, parts.manifest); err != nil {
		return "", false, r.fail(ctx, diag.Publish, err, "pushing the manifest to %s", r)
	}
	if err := s.refer(ctx, parts); err != nil {
		return "", false, r.fail(ctx, diag.Publish, err, "pushing the referrers of %s to %s", parts.manifest.Digest, r)
	}
	return parts.manifest.Digest.String(), !s.sent, nil
}

// Refer adds documents about a package in the repository. Like [Repository.Push], it
// sends their files first.
func (r *Repository) Refer(ctx context.Context, digest string, referrers []Referrer) error {
	var parts packed
	d, err := r.get(ctx, digest)
	if err == nil {
		err = checkReferrers(referrers)
	}
	if err == nil {
		parts, err = packed{manifest: d}.with(nil, referrers)
	}
	if err != nil {
		return r.fail(ctx, diag.Publish, err, "adding documents about %s to %s", digest, r)
	}
	s := &sending{r: r}
	if err := s.blobs(ctx, parts); err != nil {
		return err
	}
	return r.fail(ctx, diag.Publish, s.refer(ctx, parts), "pushing the referrers of %s to %s", digest, r)
}

// sending is the state of one push.
type sending struct {
	r           *Repository
	progress    func(done, total int64)
	done, total int64
	sent        bool   // whether anything was sent
	taken       []blob // uploaded in this push
}

func (s *sending) say(more int64) {
	if s.progress != nil {
		s.progress(s.done+more, s.total)
	}
}

// blobs sends the blobs that the registry lacks, then checks that it kept them.
func (s *sending) blobs(ctx context.Context, parts packed) error {
	for _, b := range parts.blobs {
		s.total += b.Size
	}
	for _, b := range parts.blobs {
		if err := s.blob(ctx, b); err != nil {
			return s.r.fail(ctx, diag.Publish, err, "pushing %s to %s", b.name, s.r)
		}
	}
	for _, b := range s.taken {
		if err := s.kept(ctx, b); err != nil {
			return s.r.fail(ctx, diag.Publish, err, "pushing %s to %s", b.name, s.r)
		}
	}
	return nil
}

// blob sends a blob unless the registry has it.
func (s *sending) blob(ctx context.Context, b blob) error {
	there, err := do(ctx, s.r, func(ctx context.Context) (bool, error) {
		found, err := s.r.repo.Blobs().Resolve(ctx, b.Digest.String())
		if err == nil && found.Size == b.Size {
			return true, nil
		}
		if err != nil && !isMissing(err) {
			return false, err
		}
		s.sent = true
		return false, s.upload(ctx, b)
	})
	if err != nil {
		return err
	}
	if !there {
		s.taken = append(s.taken, b)
	}
	s.done += b.Size
	s.say(0)
	return nil
}

// kept checks that the registry has an uploaded blob. It tries again, because one of
// several registries behind a name may be late.
func (s *sending) kept(ctx context.Context, b blob) error {
	_, err := do(ctx, s.r, func(ctx context.Context) (bool, error) {
		found, err := s.r.repo.Blobs().Resolve(ctx, b.Digest.String())
		if isMissing(err) || err == nil && found.Size != b.Size {
			return false, errLost
		}
		return true, err
	})
	return err
}

// upload sends a blob and verifies it while reading.
func (s *sending) upload(ctx context.Context, b blob) error {
	from := io.NopCloser(bytes.NewReader(b.data))
	if b.path != "" {
		f, err := openFile(b.path, b.Size)
		if err != nil {
			return err
		}
		from = f
	}
	body := &checked{
		from: from, left: b.Size, sum: sha256.New(), want: b.Digest.Encoded(),
		moved: func(read int64) { moved(ctx); s.say(read) },
	}
	defer body.Close()
	err := s.r.repo.Blobs().Push(ctx, b.Descriptor, body)
	// The registry's error after an aborted upload may be arbitrary, so an error of the
	// file takes precedence.
	if err := body.problem(); err != nil {
		return err
	}
	return err
}

func openFile(path string, size int64) (io.ReadCloser, error) {
	f, err := regular.Follow(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("%w: %d bytes now, %d before", errChanged, info.Size(), size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checked reads content of a known size and digest. It returns the last bytes only if
// the whole content is right. The lock is necessary because the HTTP client may still
// read after its request has ended.
type checked struct {
	mu     sync.Mutex
	from   io.ReadCloser
	read   int64
	left   int64
	sum    hash.Hash
	want   string
	failed error
	closed bool
	moved  func(read int64)
}

func (c *checked) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, os.ErrClosed
	case c.failed != nil:
		return 0, c.failed
	case c.left == 0:
		return 0, io.EOF
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.left)])
	c.sum.Write(p[:n])
	c.left, c.read = c.left-int64(n), c.read+int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		c.failed = err
	case err != nil && c.left > 0:
		c.failed = fmt.Errorf("%w: the file ends after %d bytes", errChanged, c.read)
	case c.left == 0 && hex.EncodeToString(c.sum.Sum(nil)) != c.want:
		c.failed = fmt.Errorf("%w: the sha256 differs", errChanged)
	}
	if c.failed != nil {
		return 0, c.failed
	}
	c.moved(c.read)
	return n, nil
}

// Close ends the reading. Afterwards checked neither reads nor reports progress.
func (c *checked) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.from.Close()
}

func (c *checked) problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// manifest sends a manifest unless the registry has it.
func (s *sending) manifest(ctx context.Context, d document) error {
	_, err := do(ctx, s.r, func(ctx context.Context) (bool, error) {
		there, err := s.r.repo.Manifests().Exists(ctx, d.Descriptor)
		if there || err != nil {
			return there, err
		}
		s.sent = true
		return false, s.r.put(ctx, d, d.Digest.String())
	})
	return err
}

// put stores a manifest under a tag or under its digest.
func (r *Repository) put(ctx context.Context, d document, reference string) error {
	return r.repo.Manifests().PushReference(ctx, d.Descriptor, bytes.NewReader(d.data), reference)
}

// refer sends the referrers missing in the package's list, then checks the list again.
func (s *sending) refer(ctx context.Context, parts packed) error {
	for round := range rounds {
		missing, err := s.unlisted(ctx, parts)
		if err != nil || len(missing) == 0 {
			return err
		}
		if round > 0 { // spread out concurrent writers of the list
			if err := pause(ctx, rand.N(time.Duration(round)*200*time.Millisecond)); err != nil {
				return err
			}
		}
		s.sent = true
		for _, d := range missing {
			if _, err := do(ctx, s.r, func(ctx context.Context) (bool, error) {
				return true, s.r.put(ctx, d, d.Digest.String())
			}); err != nil {
				return err
			}
		}
	}
	missing, err := s.unlisted(ctx, parts)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("the registry accepted %d referrers and does not list them", len(missing))
}

// unlisted returns the referrers missing in the package's list.
func (s *sending) unlisted(ctx context.Context, parts packed) ([]document, error) {
	if len(parts.referrers) == 0 {
		return nil, nil
	}
	listed, err := s.r.list(ctx, parts.manifest.Descriptor)
	if err != nil {
		return nil, err
	}
	var missing []document
	for _, d := range parts.referrers {
		is := func(l ocispec.Descriptor) bool { return l.Digest == d.Digest }
		if !slices.ContainsFunc(listed, is) {
			missing = append(missing, d)
		}
	}
	return missing, nil
}

// list returns the referrers of a manifest in the registry's list, each once.
func (r *Repository) list(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return do(ctx, r, func(ctx context.Context) ([]ocispec.Descriptor, error) {
		var all []ocispec.Descriptor
		seen := map[digest.Digest]bool{}
		err := r.repo.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
			moved(ctx)
			for _, d := range page {
				if !seen[d.Digest] {
					seen[d.Digest], all = true, append(all, d)
				}
			}
			if len(all) > maxReferrers {
				return fmt.Errorf("%w: more than %d referrers", errContent, maxReferrers)
			}
			return nil
		})
		return all, err
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
