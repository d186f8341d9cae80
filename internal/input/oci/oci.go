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
	"net/http"
	"net/url"
	"time"

	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// patience bounds a whole resolution. A silent registry is an error, not a reason to
// wait.
const patience = 30 * time.Second

var platform = ocispec.Platform{OS: "linux", Architecture: "amd64"}

// Resolve returns the digest of the linux/amd64 manifest of a reference such as
// rocm/dev-ubuntu-22.04:6.1-complete. It uses docker's credentials if the host has
// them.
func Resolve(ctx context.Context, name string) (string, error) {
	return resolve(ctx, name, patience, retry.Policy{Tries: 4, First: time.Second, Most: 5 * time.Second})
}

func resolve(ctx context.Context, name string, patience time.Duration, policy retry.Policy) (string, error) {
	repo, err := open(name)
	if err != nil {
		return "", diag.Errorf(diag.Usage, "resolving image %q: %w", name, err)
	}
	late := fmt.Errorf("the registry did not answer within %s", patience)
	limited, cancel := context.WithTimeoutCause(ctx, patience, late)
	defer cancel()
	digest, err := retry.Do(limited, policy, func(ctx context.Context) (string, error) {
		target := platform
		found, err := oras.Resolve(ctx, repo, repo.Reference.Reference, oras.ResolveOptions{TargetPlatform: &target})
		return found.Digest.String(), mark(err)
	})
	switch {
	case err == nil:
		return digest, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("resolving image %q: %w", name, context.Cause(ctx))
	}
	return "", diag.Errorf(diag.Fetch, "resolving image %q: %w", name, plain(err)).
		WithHint("only a lock needs the digest: run `builder lock` on a host that reaches the registry and check the lock in, set HTTPS_PROXY, or write the digest into images/*.yaml")
}

// Find asks once whether the registry has an image for linux/amd64. It returns
// [ErrAbsent] if it has none.
func Find(ctx context.Context, name string) error {
	repo, err := open(name)
	if err != nil {
		return diag.Errorf(diag.Usage, "finding image %q: %w", name, err)
	}
	target := platform
	if _, err := oras.Resolve(ctx, repo, repo.Reference.Reference, oras.ResolveOptions{TargetPlatform: &target}); err != nil {
		return fmt.Errorf("finding image %q: %w", name, plain(err))
	}
	return nil
}

// open returns the repository of a reference, including the tag or digest.
func open(text string) (*remote.Repository, error) {
	name, err := reference.ParseNormalizedNamed(text) // completes a short name as docker does
	if err != nil {
		return nil, err
	}
	repo, err := remote.NewRepository(name.String())
	if err != nil {
		return nil, err
	}
	if repo.Reference.Reference == "" {
		return nil, errors.New("no tag and no digest")
	}
	repo.PlainHTTP = web.Loopback(repo.Reference.Host())
	// The default transport of oras-go repeats requests. Package retry does that here.
	client := &auth.Client{Client: web.Client(nil), Cache: auth.NewCache()}
	if store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{}); err == nil {
		client.Credential = credentials.Credential(store)
	}
	repo.Client = client
	return repo, nil
}

// Endpoint returns the address of a reference's registry.
func Endpoint(name string) (string, error) {
	repo, err := open(name)
	if err != nil {
		return "", diag.Errorf(diag.Usage, "image %q: %w", name, err)
	}
	scheme := "https"
	if repo.PlainHTTP {
		scheme = "http"
	}
	return scheme + "://" + repo.Reference.Host() + "/v2/", nil
}

// mark marks the errors worth another attempt as temporary.
func mark(err error) error {
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500 {
			return retry.Temporary(err, 0)
		}
		return err
	}
	if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
		return retry.Temporary(err, 0)
	}
	return err
}

// ErrAbsent means that a registry answers and does not have the image.
var ErrAbsent = errors.New("not in the registry for linux/amd64")

// plain removes the addresses before the messages of oras-go and net/http.
func plain(err error) error {
	if errors.Is(err, errdef.ErrNotFound) {
		return ErrAbsent
	}
	if response, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return fmt.Errorf("the registry answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
