package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
)

// Resolve returns the digest of a tag, or a given digest if the repository has it.
// Otherwise the error is [ErrAbsent]. Resolve computes the digest from the bytes and
// ignores the registry's claim.
func (r *Repository) Resolve(ctx context.Context, tagOrDigest string) (string, error) {
	d, _, err := r.get(ctx, tagOrDigest)
	if err != nil {
		return "", r.fail(ctx, diag.Fetch, err, "resolving %q in %s", tagOrDigest, r)
	}
	return d.Digest.String(), nil
}

// Manifest returns the manifest with a digest. A manifest of anything but a package, or
// with any problem, is an error.
func (r *Repository) Manifest(ctx context.Context, digest string) (Manifest, error) {
	var m Manifest
	err := CheckDigest(digest)
	if err == nil {
		m, err = r.manifest(ctx, digest)
	}
	return m, r.fail(ctx, diag.Fetch, err, "reading %s in %s", digest, r)
}

func (r *Repository) manifest(ctx context.Context, digest string) (Manifest, error) {
	_, data, err := r.get(ctx, digest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := read(data)
	if err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", errContent, err)
	}
	return m, nil
}

// get reads the manifest of a tag or a digest. oras verifies the digest.
func (r *Repository) get(ctx context.Context, reference string) (d ocispec.Descriptor, data []byte, err error) {
	check := checkTag
	if strings.Contains(reference, ":") {
		check = CheckDigest
	}
	if err := check(reference); err != nil {
		return d, nil, err
	}
	err = try(ctx, r.policy, func(ctx context.Context) (err error) {
		d, data, err = oras.FetchBytes(ctx, r.repo, reference, oras.FetchBytesOptions{MaxBytes: maxManifest})
		return err
	})
	return d, data, err
}

func checkTag(tag string) error {
	if err := (registry.Reference{Reference: tag}).ValidateReferenceAsTag(); err != nil {
		return fmt.Errorf("%q is not a tag: write at most 128 letters, digits, dots, dashes and underscores", tag)
	}
	return nil
}

// Referrers returns the documents about a package, sorted by digest. It reads each
// document and checks that it names the package, because the registry's list is not
// trusted. It skips other documents, such as those that another tool attached.
func (r *Repository) Referrers(ctx context.Context, of string) (all []Manifest, err error) {
	defer func() { err = r.fail(ctx, diag.Fetch, err, "listing the referrers of %s in %s", of, r) }()
	if err := CheckDigest(of); err != nil {
		return nil, err
	}
	var listed []ocispec.Descriptor
	err = try(ctx, r.policy, func(ctx context.Context) (err error) {
		listed, err = listReferrers(ctx, r.repo, ocispec.Descriptor{Digest: digest.Digest(of)})
		return err
	})
	for _, d := range listed {
		if err != nil {
			return nil, err
		}
		if CheckDigest(d.Digest.String()) != nil {
			continue
		}
		m, failed := r.manifest(ctx, d.Digest.String())
		switch {
		case failed == nil && m.Subject == of:
			all = append(all, m)
		case failed == nil, errors.Is(failed, errContent), errors.Is(failed, errdef.ErrNotFound), errors.Is(failed, errdef.ErrSizeExceedsLimit):
		default:
			err = failed
		}
	}
	slices.SortFunc(all, func(a, b Manifest) int { return strings.Compare(a.Digest, b.Digest) })
	return all, err
}

// listReferrers returns the referrers of a manifest in the registry's list, each once.
func listReferrers(ctx context.Context, repo *remote.Repository, subject ocispec.Descriptor) (all []ocispec.Descriptor, err error) {
	seen := map[digest.Digest]bool{}
	err = repo.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if !seen[d.Digest] {
				seen[d.Digest], all = true, append(all, d)
			}
			if len(all) > maxReferrers {
				return fmt.Errorf("%w: more than %d referrers", errContent, maxReferrers)
			}
		}
		return nil
	})
	return all, err
}

// Fetch writes a file of a package to a folder, under its own name. The file
// appears only after all its bytes were verified, and it replaces a file of the same
// name. Fetch writes nothing outside the folder and at most the file's size.
func (r *Repository) Fetch(ctx context.Context, f File, dir string) error {
	err := f.check()
	if err == nil {
		err = try(ctx, r.policy, func(ctx context.Context) error { return fetchFile(ctx, r.repo, f, dir) })
	}
	return r.fail(ctx, diag.Fetch, err, "fetching %q from %s", f.Name, r)
}

func fetchFile(ctx context.Context, repo *remote.Repository, f File, dir string) error {
	body, err := repo.Blobs().Fetch(ctx, f.descriptor())
	if err != nil {
		return err
	}
	defer body.Close()
	return atomicfile.Make(filepath.Join(dir, f.Name), func(w io.Writer) error {
		verified := content.NewVerifyReader(body, f.descriptor())
		if _, err := io.Copy(w, verified); err != nil {
			return err
		}
		return verified.Verify()
	})
}
