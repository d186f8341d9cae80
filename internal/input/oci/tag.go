package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"builder/internal/base/diag"
)

// Tag sets a tag to a digest in the repository. If the tag names other content, Tag
// leaves it unchanged and returns [Conflict], unless move is set.
// Registries have no compare-and-set: of two publishers at the same moment the later
// wins. The earlier gets [Conflict] if it sees the change when it reads the tag back.
func (r *Repository) Tag(ctx context.Context, digest, tag string, move bool) error {
	return r.fail(ctx, diag.Publish, r.tag(ctx, digest, tag, move), "tagging %s as %q in %s", digest, tag, r)
}

func (r *Repository) tag(ctx context.Context, digest, tag string, move bool) error {
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
		return &Conflict{tag, have.Digest.String(), digest}
	}
	d, data, err := r.get(ctx, digest)
	if err != nil {
		return err
	}
	err = r.try(ctx, func(ctx context.Context) error { return r.repo.PushReference(ctx, d, bytes.NewReader(data), tag) })
	if err != nil {
		return err
	}
	now, _, err := r.get(ctx, tag)
	switch {
	case err != nil:
		return fmt.Errorf("reading the tag again: %w", err)
	case now.Digest != d.Digest:
		return &Conflict{tag, now.Digest.String(), digest}
	}
	return nil
}

// Delete removes the manifest with a digest, if the registry allows it. Most registries
// also remove its tags, none its referrers. The error for a missing manifest is
// [ErrAbsent].
func (r *Repository) Delete(ctx context.Context, digest string) error {
	var d ocispec.Descriptor
	err := CheckDigest(digest)
	if err == nil {
		d, _, err = r.get(ctx, digest)
	}
	if err == nil {
		err = r.remove(ctx, d)
	}
	return r.fail(ctx, diag.Publish, err, "deleting %s in %s", digest, r)
}

// Untag removes a tag and keeps its content. The error for a missing tag is [ErrAbsent].
// Registries without this operation (those of the distribution project before 3.0)
// remove tags together with the manifest, see [Repository.Delete].
func (r *Repository) Untag(ctx context.Context, tag string) error {
	err := checkTag(tag)
	if err == nil { // oras puts the digest of the descriptor into the path, where the tag belongs
		err = r.remove(ctx, ocispec.Descriptor{Digest: digest.Digest(tag)})
	}
	return r.fail(ctx, diag.Publish, err, "removing the tag %q in %s", tag, r)
}

func (r *Repository) remove(ctx context.Context, d ocispec.Descriptor) error {
	return r.try(ctx, func(ctx context.Context) error { return r.repo.Manifests().Delete(ctx, d) })
}
