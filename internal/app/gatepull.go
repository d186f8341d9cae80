package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/publishing/publish"
	"builder/internal/publishing/subject"
)

// subjects finds the artifacts of the request. It pulls those in registries.
func (b *gateRun) subjects(ctx context.Context) ([]subject.Subject, error) {
	paths, err := b.here(ctx, b.options.Paths...)
	if err != nil {
		return nil, err
	}
	return subject.Find(paths, b.options.Entry)
}

// pullDevice replaces addresses in registries by paths of this host.
func (b *gateRun) pullDevice(ctx context.Context, d *DeviceRequest) error {
	for _, path := range []*string{&d.Tests, &d.Against} {
		found, err := b.here(ctx, *path)
		if err != nil {
			return err
		}
		*path = found[0]
	}
	var err error
	d.With, err = b.here(ctx, d.With...)
	return err
}

// here returns the paths with each address in a registry replaced by that of the pulled
// artifact. It joins all errors.
func (b *gateRun) here(ctx context.Context, paths ...string) ([]string, error) {
	paths = slices.Clone(paths)
	var errs []error
	for i, path := range paths {
		if publish.InRegistry(path) && ctx.Err() == nil {
			found, err := b.pull(ctx, path)
			paths[i], errs = found, append(errs, err)
		}
	}
	return paths, errors.Join(errs...)
}

// pull copies a publication below the scratch directory. Transparency logs count when it
// is published: this host cannot log its verdicts.
func (b *gateRun) pull(ctx context.Context, address string) (path string, err error) {
	from, err := publish.OpenDigest(address, b.options.Insecure)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.scratch, "pulled-*")
	if err != nil {
		return "", err
	}
	start := time.Now()
	b.Display.Start(from.String(), "pull")
	path, err = from.Pull(ctx, dir, unlogged(b.trust))
	b.Display.Done(from.String(), "pull", time.Since(start), false, err)
	b.pulled[path] = from
	return path, err
}

// attachThere adds the verdicts of this host to a pulled artifact's publication.
func (b *gateRun) attachThere(ctx context.Context, a artifact.Artifact, key signing.Key) error {
	from, ok := b.pulled[a.Path]
	if !ok {
		return nil
	}
	trust := unlogged(b.trust)
	trust.Keys = append(slices.Clone(trust.Keys), key.Public())
	return from.Attach(ctx, a, trust)
}
