package oci

import (
	"context"
	"errors"
	"fmt"

	"builder/internal/base/diag"
)

// TagOptions configure [Repository.Tag].
type TagOptions struct {
	Move bool // move the tag if it names other content
}

// Tag sets a tag to a digest in the repository. If the tag names other content, Tag
// leaves it unchanged and returns [Conflict], unless the options allow a move.
// Registries have no compare-and-set: of two publishers at the same moment the later
// wins. The earlier gets [Conflict] if it sees the change when it reads the tag back.
func (r *Repository) Tag(ctx context.Context, digest, tag string, o TagOptions) error {
	return r.fail(ctx, diag.Publish, r.tag(ctx, digest, tag, o), "tagging %s as %q in %s", digest, tag, r)
}

func (r *Repository) tag(ctx context.Context, digest, tag string, o TagOptions) error {
	if err := errors.Join(CheckDigest(digest), checkTag(tag)); err != nil {
		return err
	}
	have, err := r.get(ctx, tag)
	switch {
	case err != nil && !isMissing(err):
		return err
	case err == nil && have.Digest.String() == digest:
		return nil
	case err == nil && !o.Move:
		return &Conflict{tag, have.Digest.String(), digest}
	}
	d, err := r.get(ctx, digest)
	if err != nil {
		return err
	}
	if _, err := do(ctx, r, func(ctx context.Context) (bool, error) { return true, r.put(ctx, d, tag) }); err != nil {
		return err
	}
	now, err := r.get(ctx, tag)
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
// [NotFound].
func (r *Repository) Delete(ctx context.Context, digest string) error {
	return r.fail(ctx, diag.Publish, r.remove(ctx, digest), "deleting %s in %s", digest, r)
}

func (r *Repository) remove(ctx context.Context, digest string) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	d, err := r.get(ctx, digest)
	if err != nil {
		return err
	}
	_, err = do(ctx, r, func(ctx context.Context) (bool, error) {
		return true, r.repo.Manifests().Delete(ctx, d.Descriptor)
	})
	return err
}
