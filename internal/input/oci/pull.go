package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"

	"builder/internal/base/diag"
)

// errContent is the error for content that contradicts its digest, its size or its
// manifest.
var errContent = errors.New("the registry returned wrong content")

func isMissing(err error) bool {
	if _, ok := errors.AsType[*NotFound](err); ok {
		return true
	}
	return errors.Is(err, errdef.ErrNotFound)
}

// Resolve returns the digest of a tag, or a given digest if the repository has it.
// Otherwise the error is [NotFound]. Resolve computes the digest from the bytes and
// ignores the registry's claim.
func (r *Repository) Resolve(ctx context.Context, tagOrDigest string) (string, error) {
	d, err := r.get(ctx, tagOrDigest)
	if err != nil {
		return "", r.fail(ctx, diag.Fetch, err, "resolving %q in %s", tagOrDigest, r)
	}
	return d.Digest.String(), nil
}

// Manifest returns the manifest with a digest. A manifest of anything but a package, or
// with any problem, is an error.
func (r *Repository) Manifest(ctx context.Context, digest string) (Manifest, error) {
	m, err := r.manifest(ctx, digest)
	return m, r.fail(ctx, diag.Fetch, err, "reading %s in %s", digest, r)
}

func (r *Repository) manifest(ctx context.Context, digest string) (Manifest, error) {
	if err := CheckDigest(digest); err != nil {
		return Manifest{}, err
	}
	d, err := r.get(ctx, digest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := read(d.data)
	if err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", errContent, err)
	}
	return m, nil
}

// get reads the manifest of a tag or a digest.
func (r *Repository) get(ctx context.Context, reference string) (document, error) {
	if err := checkReference(reference); err != nil {
		return document{}, err
	}
	return do(ctx, r, func(ctx context.Context) (document, error) {
		d, body, err := r.repo.Manifests().FetchReference(ctx, reference)
		if err != nil {
			return document{}, err
		}
		defer body.Close()
		if d.Size > maxManifest {
			return document{}, fmt.Errorf("%w: a manifest of %d bytes, more than %d", errContent, d.Size, maxManifest)
		}
		data, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
		if err != nil {
			return document{}, err
		}
		if found := digest.FromBytes(data); found != d.Digest {
			return document{}, fmt.Errorf("%w: bytes with digest %s instead of %s", errContent, found, d.Digest)
		}
		return document{d, data}, nil
	})
}

func checkReference(reference string) error {
	if strings.Contains(reference, ":") {
		return CheckDigest(reference)
	}
	return checkTag(reference)
}

func checkTag(tag string) error {
	if err := (registry.Reference{Reference: tag}).ValidateReferenceAsTag(); err != nil {
		return fmt.Errorf("%q is not a tag: write at most 128 letters, digits, dots, dashes and underscores", tag)
	}
	return nil
}

// A Reference is a referrer in a repository. Fault is set if the referrer was
// unreadable, for example because another tool attached it. Its manifest then holds
// only a digest.
type Reference struct {
	Manifest
	Fault error
}

// Referrers returns the documents about a package, sorted by digest. It reads each
// document and checks that it names the package, because the registry's list is not
// trusted.
func (r *Repository) Referrers(ctx context.Context, of string) ([]Reference, error) {
	all, err := r.referrers(ctx, of)
	return all, r.fail(ctx, diag.Fetch, err, "listing the referrers of %s in %s", of, r)
}

func (r *Repository) referrers(ctx context.Context, of string) ([]Reference, error) {
	if err := CheckDigest(of); err != nil {
		return nil, err
	}
	listed, err := r.list(ctx, ocispec.Descriptor{Digest: digest.Digest(of)})
	if err != nil {
		return nil, err
	}
	var all []Reference
	for _, d := range listed {
		m, err := r.manifest(ctx, d.Digest.String())
		if err == nil && m.Subject != of {
			err = fmt.Errorf("%w: the subject is %q", errContent, m.Subject)
		}
		switch {
		case errors.Is(err, errContent), isMissing(err), CheckDigest(d.Digest.String()) != nil:
			m = Manifest{Digest: d.Digest.String()}
		case err != nil:
			return nil, err
		}
		all = append(all, Reference{m, err})
	}
	slices.SortFunc(all, func(a, b Reference) int { return strings.Compare(a.Digest, b.Digest) })
	return all, nil
}

// ownTag matches the tags for lists of referrers in registries without the referrers
// API.
var ownTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}$`)

// Tags returns the tags of a repository in alphabetical order, without the tags for
// lists of referrers. The error for a missing repository is [NotFound].
func (r *Repository) Tags(ctx context.Context) ([]string, error) {
	tags, err := do(ctx, r, func(ctx context.Context) ([]string, error) {
		var tags []string
		err := r.repo.Tags(ctx, "", func(page []string) error {
			moved(ctx)
			for _, tag := range page {
				if checkTag(tag) == nil && !ownTag.MatchString(tag) {
					tags = append(tags, tag)
				}
			}
			if len(tags) > maxTags {
				return fmt.Errorf("%w: more than %d tags", errContent, maxTags)
			}
			return nil
		})
		return tags, err
	})
	slices.Sort(tags)
	return slices.Compact(tags), r.fail(ctx, diag.Fetch, err, "listing the tags of %s", r)
}

// Fetch writes a file of a package to an existing folder, under its own name. The file
// appears only after all its bytes were verified, and it replaces a file of the same
// name. Fetch does nothing if the folder already holds the same file. It writes nothing
// outside the folder and at most the file's size. progress may be nil.
func (r *Repository) Fetch(ctx context.Context, f File, dir string, progress func(done, total int64)) error {
	return r.fail(ctx, diag.Fetch, r.fetch(ctx, f, dir, progress), "fetching %q from %s", f.Name, r)
}

func (r *Repository) fetch(ctx context.Context, f File, dir string, progress func(done, total int64)) error {
	if err := f.check(); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	say := func(done int64) {
		if progress != nil {
			progress(done, f.Size)
		}
	}
	if holds(root, f) {
		say(f.Size)
		return nil
	}
	_, err = do(ctx, r, func(ctx context.Context) (bool, error) {
		body, err := r.repo.Blobs().Fetch(ctx, f.descriptor())
		if err != nil {
			return false, err
		}
		defer body.Close()
		return true, place(root, f, func(to io.Writer) error {
			return f.copy(to, body, func(done int64) { moved(ctx); say(done) })
		})
	})
	return err
}

// holds reports whether a folder holds the file.
func holds(root *os.Root, f File) bool {
	info, err := root.Lstat(f.Name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
		return false
	}
	there, err := root.Open(f.Name)
	if err != nil {
		return false
	}
	defer there.Close()
	return f.copy(io.Discard, there, func(int64) {}) == nil
}

// place writes a file under a temporary name and renames it.
func place(root *os.Root, f File, write func(io.Writer) error) (err error) {
	name := fmt.Sprintf(".fetch-%016x", rand.Uint64())
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(name)
		}
	}()
	err = write(file)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return root.Rename(name, f.Name)
}

// copy copies and verifies the bytes of a file. It fails after more bytes than the file
// has.
func (f File) copy(to io.Writer, from io.Reader, moved func(done int64)) error {
	sum := sha256.New()
	done := int64(0)
	buffer := make([]byte, 256<<10)
	for {
		n, err := from.Read(buffer)
		if done += int64(n); done > f.Size {
			return fmt.Errorf("%w: more than %d bytes", errContent, f.Size)
		}
		sum.Write(buffer[:n])
		if _, err := to.Write(buffer[:n]); err != nil {
			return err
		}
		moved(done)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the download ended after %d of %d bytes: %w", done, f.Size, err)
		}
	}
	if done < f.Size {
		return fmt.Errorf("the download ended after %d of %d bytes: %w", done, f.Size, io.ErrUnexpectedEOF)
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != f.SHA256 {
		return fmt.Errorf("%w: bytes with sha256 %s instead of %s", errContent, found, f.SHA256)
	}
	return nil
}
