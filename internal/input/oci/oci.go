// Package oci talks to registries. It resolves image references and stores packages of
// files.
//
// A build never resolves a reference: the lock holds the digest, and the engine pulls
// by digest.
//
// A [Package] has the layout of ORAS, one layer per file with the file name as its
// title, so that oras and similar tools can pull it. A [Referrer] is a document about a
// package and is found by the package's digest. For a registry without the referrers
// API, publishers keep the list of referrers under a tag. The same package always has
// the same digest. This package does not trust registries: it accepts bytes only with
// the requested digest and names only as plain base names, and it sends credentials to
// the registry alone.
package oci

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
)

// patience bounds a whole resolution. A silent registry is an error, not a reason to
// wait.
const patience = 30 * time.Second

var platform = ocispec.Platform{OS: "linux", Architecture: "amd64"}

// Resolve returns the digest of the linux/amd64 manifest of a reference such as
// rocm/dev-ubuntu-22.04:6.1-complete. It uses docker's credentials if the host has
// them.
func Resolve(ctx context.Context, name string) (string, error) {
	return resolve(ctx, name, patience, Options{})
}

func resolve(ctx context.Context, name string, patience time.Duration, o Options) (string, error) {
	repo, err := open(name, o)
	if err != nil {
		return "", diag.Errorf(diag.Usage, "resolving image %q: %w", name, err)
	}
	late := fmt.Errorf("the registry did not answer within %s", patience)
	limited, cancel := context.WithTimeoutCause(ctx, patience, late)
	defer cancel()
	var found ocispec.Descriptor
	err = try(limited, repo.policy, func(ctx context.Context) (err error) {
		found, err = findImage(ctx, repo.repo)
		return err
	})
	switch {
	case err == nil:
		return found.Digest.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("resolving image %q: %w", name, context.Cause(ctx))
	}
	return "", diag.Errorf(diag.Fetch, "resolving image %q for linux/amd64: %w", name, plain(err)).
		WithHint("only a lock needs the digest: run `builder lock` on a host that reaches the registry and check the lock in, set HTTPS_PROXY, or write the digest into images/*.yaml")
}

// Find asks once whether the registry has an image for linux/amd64. It returns
// [ErrAbsent] if it has none, and [ErrSilent] if it cannot be reached. A slow registry is
// neither: of one that does not answer until ctx ends, nothing is known.
func Find(ctx context.Context, name string) error {
	repo, err := open(name, Options{})
	if err != nil {
		return diag.Errorf(diag.Usage, "finding image %q: %w", name, err)
	}
	_, err = findImage(ctx, repo.repo)
	if err == nil {
		return nil
	}
	_, asked := errors.AsType[*url.Error](err)
	_, network := errors.AsType[*net.OpError](err)
	if ctx.Err() == nil && asked && (network || !retry.IsTemporary(err)) {
		return fmt.Errorf("%w: %w", ErrSilent, plain(err))
	}
	return plain(err)
}

// findImage returns the linux/amd64 manifest of the reference that the repository was
// opened with.
func findImage(ctx context.Context, repo *remote.Repository) (ocispec.Descriptor, error) {
	return oras.Resolve(ctx, repo, repo.Reference.Reference, oras.ResolveOptions{TargetPlatform: &platform})
}

// open returns the repository of a reference, including the tag or digest.
func open(text string, o Options) (*Repository, error) {
	name, err := reference.ParseNormalizedNamed(text) // completes a short name as docker does
	if err != nil {
		return nil, err
	}
	where, err := registry.ParseReference(name.String())
	if err != nil {
		return nil, err
	}
	if where.Reference == "" {
		return nil, errors.New("no tag and no digest")
	}
	return connect(where, o)
}
