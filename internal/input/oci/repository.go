package oci

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/base/web"
)

// Scheme is the prefix of a repository in user input.
const Scheme = "oci://"

// silence bounds the time without any byte sent or received. It includes the registry's
// time to store the content.
const silence = 2 * time.Minute

// Options configure the access to a repository. The zero value is the usual
// configuration.
type Options struct {
	Insecure bool          // allow plain HTTP to other hosts
	retry    retry.Policy  // the zero value is [retry.Default]
	silence  time.Duration // longest time without a byte; 0 means two minutes
}

// A Repository stores packages in a registry. Its methods are safe for concurrent use.
type Repository struct {
	repo   *remote.Repository
	policy retry.Policy
}

// OpenRepository returns the repository of an address such as
// oci://registry.example:5000/wheels/horovod. It sends no request. TLS certificates are
// verified. Plain HTTP is used for this host, and for other hosts only with
// [Options].Insecure. The credentials are docker's.
func OpenRepository(text string, o Options) (*Repository, error) {
	where, err := parsePlace(text)
	if err != nil {
		return nil, err
	}
	return connect(where, o)
}

// connect returns a repository. Its client sends credentials only to the registry: oras
// follows neither links nor upload locations to another host.
func connect(where registry.Reference, o Options) (*Repository, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "reading docker's configuration: %w", err)
	}
	client := web.Client(web.Options{Plain: o.Insecure, Silence: cmp.Or(o.silence, silence)})
	return &Repository{policy: cmp.Or(o.retry, retry.Default), repo: &remote.Repository{
		Client:    &auth.Client{Client: client, Cache: auth.NewCache(), Credential: credentials.Credential(store)},
		Reference: where,
		PlainHTTP: o.Insecure || web.Loopback(where.Host()),
		// Keep old lists of referrers: another publisher may be reading them, and some
		// registries refuse to delete them.
		SkipReferrersGC:      true,
		MaxMetadataBytes:     maxManifest,
		ReferrerListMaxPages: maxReferrers,
	}}, nil
}

// String returns the repository as users write it.
func (r *Repository) String() string {
	return Scheme + r.repo.Reference.Registry + "/" + r.repo.Reference.Repository
}

func parsePlace(text string) (registry.Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	hint := "write it as " + Scheme + "HOST/REPOSITORY, without a tag"
	if strings.Contains(rest, "@") { // may hold a password, so the message omits it
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: the address has a digest or a user name").
			WithHint("%s; credentials come from docker's configuration", hint)
	}
	where, err := registry.ParseReference(rest)
	if !ok || err != nil || where.Reference != "" {
		return registry.Reference{}, diag.Errorf(diag.Usage, "reading the address of a repository: %q is not an address", text).WithHint("%s", hint)
	}
	return where, nil
}

// try calls f until it succeeds or another attempt cannot help. The client marks the
// answers worth another attempt. One more is that of a registry behind: it does not know
// an upload or a file sent earlier to another registry behind the same name, or reads a
// file that another publisher is writing.
func try(ctx context.Context, policy retry.Policy, f func(context.Context) error) error {
	_, err := retry.Do(ctx, policy, func(ctx context.Context) (struct{}, error) {
		err := f(ctx)
		said, _ := errors.AsType[errcode.Errors](err)
		if slices.ContainsFunc(said, func(e errcode.Error) bool {
			return e.Code == errcode.ErrorCodeBlobUploadUnknown || e.Code == errcode.ErrorCodeManifestBlobUnknown
		}) {
			err = retry.Temporary(err, 0)
		}
		return struct{}{}, err
	})
	return err
}

// hub returns the registry of names without a host, such as rocm/tensorflow:latest.
func hub() string {
	name, _ := reference.ParseNormalizedNamed("rocm/tensorflow") // well-formed
	return reference.Domain(name)
}

// Mirrors maps registries to the places from which their images are pulled. A build pulls
// by digest, so a mirror can withhold an image but not change it.
type Mirrors map[string]string

// ParseMirrors reads mirrors such as mirror.example.org/hub, for Docker Hub, and
// other.example.org=mirror.example.org/other. The last one for a registry counts.
func ParseMirrors(texts []string) (Mirrors, error) {
	m := Mirrors{}
	for _, text := range texts {
		registry, place, named := strings.Cut(text, "=")
		if !named {
			registry, place = hub(), text
		}
		place = strings.TrimSuffix(place, "/")
		if !parses(registry+"/a") || !parses(place+"/a") || !strings.ContainsAny(place, ".:") {
			return nil, diag.Errorf(diag.Usage, "%q is no mirror of a registry", text).
				WithHint("BUILDER_MIRROR_REGISTRY is HOST[:PORT][/PATH] for Docker Hub or REGISTRY=HOST[:PORT][/PATH], several separated by commas, without https://")
		}
		m[registry] = place
	}
	return m, nil
}

// parses reports whether a reference is well-formed.
func parses(name string) bool {
	_, err := reference.ParseNormalizedNamed(name)
	return err == nil
}

// Reference returns the reference of an image at the mirror of its registry, or name
// itself if the registry has none.
func (m Mirrors) Reference(name string) string {
	full, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	place, mirrored := m[reference.Domain(full)]
	if !mirrored {
		return name
	}
	return place + strings.TrimPrefix(full.String(), reference.Domain(full))
}
