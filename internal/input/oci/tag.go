package oci

import (
	"context"
	"errors"
	"fmt"

	"builder/internal/base/diag"
)

// TagOptions say what a tag may do.
type TagOptions struct {
	Move bool // away from what it stands for
}

// Tag lets a tag stand for a digest that the repository has. A tag that stands for
// something else is left alone, and the error is [Conflict], unless the options let
// it move. Registries cannot compare and set: of two who tag at the same instant the
// later wins, and the earlier is told if it can still be seen.
func (r *Repository) Tag(ctx context.Context, digest, tag string, o TagOptions) error {
	return r.fail(ctx, diag.Publish, r.tag(ctx, digest, tag, o), "tagging %s as %q in %s", digest, tag, r)
}

func (r *Repository) tag(ctx context.Context, digest, tag string, o TagOptions) error {
	if err := errors.Join(checkDigest(digest), checkTag(tag)); err != nil {
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
		return fmt.Errorf("looking at it afterwards: %w", err)
	case now.Digest != d.Digest:
		return &Conflict{tag, now.Digest.String(), digest}
	}
	return nil
}

// Delete removes the manifest of that digest, where the registry allows it; most
// remove its tags with it, none its referrers. Where it is not there the error is
// [NotFound].
func (r *Repository) Delete(ctx context.Context, digest string) error {
	return r.fail(ctx, diag.Publish, r.remove(ctx, digest), "deleting %s in %s", digest, r)
}

func (r *Repository) remove(ctx context.Context, digest string) error {
	if err := checkDigest(digest); err != nil {
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
