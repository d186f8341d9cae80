package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"oras.land/oras-go/v2/errdef"

	"builder/internal/base/diag"
)

// Tag sets a tag to a digest in the repository. If the tag names other content, Tag
// leaves it unchanged and returns an error, unless move is set. Registries have no
// compare-and-set: of two publishers at the same moment the later wins.
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
		return fmt.Errorf("%w: %s is %s, not %s", errTaken, tag, have.Digest, digest)
	}
	d, data, err := r.get(ctx, digest)
	if err != nil {
		return err
	}
	return r.try(ctx, func(ctx context.Context) error { return r.repo.PushReference(ctx, d, bytes.NewReader(data), tag) })
}
