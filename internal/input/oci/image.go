package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// Pull copies the linux/amd64 image with a reference such as rocm/ours@sha256:… from its
// registry to a store, and returns its blobs as [Held] does. It fetches only the blobs
// that the store lacks.
func Pull(ctx context.Context, name string, s *store.Store) ([]store.Blob, error) {
	r, err := open(name, Options{})
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "pulling image %q: %w", name, err)
	}
	at := r.repo.Reference.Reference
	if err := CheckDigest(at); err != nil {
		return nil, diag.Errorf(diag.Usage, "pulling image %q: the reference has no digest", name)
	}
	err = try(ctx, r.policy, func(ctx context.Context) error { return copyImage(ctx, r.repo, at, blobs{s}) })
	held, all := Held(s, at)
	switch {
	case err == nil && all:
		return held, nil
	case err == nil:
		err = errContent
	case ctx.Err() != nil:
		return nil, fmt.Errorf("pulling image %q: %w", name, context.Cause(ctx))
	}
	return nil, diag.Errorf(diag.Fetch, "pulling image %q for linux/amd64: %w", name, plain(err)).
		WithHint("this host must reach the image's registry, or its mirror in BUILDER_MIRROR_REGISTRY")
}

// copyImage copies the image of a digest, and the index above it if the digest is that of
// an index. The store verifies every digest.
func copyImage(ctx context.Context, from *remote.Repository, at string, to blobs) error {
	root, err := from.Resolve(ctx, at)
	if err != nil {
		return err
	}
	if root.Size > maxManifest {
		return fmt.Errorf("%w: a manifest of %d bytes, more than %d", errContent, root.Size, maxManifest)
	}
	return oras.CopyGraph(ctx, from, to, root, oras.CopyGraphOptions{FindSuccessors: parts})
}

// Media types of docker, for images that docker pushed.
const (
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

func isIndex(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageIndex || mediaType == dockerIndex
}

func isManifest(mediaType string) bool {
	return mediaType == ocispec.MediaTypeImageManifest || mediaType == dockerManifest
}

// parts returns the configuration and layers of a manifest, or the linux/amd64 manifest of
// an index.
func parts(ctx context.Context, from content.Fetcher, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	found, err := content.Successors(ctx, from, d)
	if err != nil || !isIndex(d.MediaType) {
		return found, err
	}
	for _, m := range found {
		if p := m.Platform; p != nil && p.OS == platform.OS && p.Architecture == platform.Architecture && isManifest(m.MediaType) && m.Size <= maxManifest {
			return []ocispec.Descriptor{m}, nil
		}
	}
	return nil, ErrAbsent
}

// Held returns the blobs of the image with a digest: its manifest first, then its
// configuration and layers, then the index if the digest is that of an index. It returns
// false if the store lacks one of them.
func Held(s *store.Store, imageDigest string) ([]store.Blob, bool) {
	all, err := graph(s, imageDigest)
	if err != nil {
		return nil, false
	}
	var held []store.Blob
	for _, d := range all {
		b := blobOf(d)
		if _, here := s.Path(b); !here {
			return nil, false
		}
		held = append(held, b)
	}
	return held, true
}

// graph returns the descriptors of an image in the order of [Held].
func graph(s *store.Store, imageDigest string) ([]ocispec.Descriptor, error) {
	root := ocispec.Descriptor{Digest: digest.Digest(imageDigest)}
	if err := CheckDigest(imageDigest); err != nil {
		return nil, err
	}
	file, ok := s.Path(blobOf(root))
	if !ok {
		return nil, fs.ErrNotExist
	}
	data, err := regular.Read(file, maxManifest)
	if err != nil {
		return nil, err
	}
	root.Size, root.MediaType = int64(len(data)), typeOf(data)
	all, err := parts(context.Background(), blobs{s}, root)
	if err != nil || !isIndex(root.MediaType) {
		return append([]ocispec.Descriptor{root}, all...), err
	}
	manifest := all[0]
	all, err = parts(context.Background(), blobs{s}, manifest)
	return append(append([]ocispec.Descriptor{manifest}, all...), root), err
}

// typeOf returns the media type of a manifest or an index, which may not name it.
func typeOf(data []byte) string {
	var index ocispec.Index
	_ = json.Unmarshal(data, &index) // what is neither has no parts
	switch {
	case index.MediaType != "":
		return index.MediaType
	case len(index.Manifests) > 0:
		return ocispec.MediaTypeImageIndex
	}
	return ocispec.MediaTypeImageManifest
}

func blobOf(d ocispec.Descriptor) store.Blob {
	return store.Blob{Name: d.Digest.String(), Size: d.Size, SHA256: d.Digest.Encoded()}
}

// blobs is a store as the target of a copy.
type blobs struct{ *store.Store }

var _ content.Storage = blobs{}

// Exists implements [content.ReadOnlyStorage]. A manifest never exists: of one that does,
// oras would not look for the layers, and the store may have removed them.
func (b blobs) Exists(_ context.Context, d ocispec.Descriptor) (bool, error) {
	_, here := b.Path(blobOf(d))
	return here && !isIndex(d.MediaType) && !isManifest(d.MediaType), nil
}

func (b blobs) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	file, err := b.Use(blobOf(d))
	if err != nil {
		return nil, err
	}
	return os.Open(file)
}

// maxImage bounds the stated size of a blob in bytes.
const maxImage = 1 << 50

func (b blobs) Push(_ context.Context, d ocispec.Descriptor, r io.Reader) error {
	if d.Digest.Algorithm() != digest.SHA256 || d.Size < 0 || d.Size > maxImage {
		return fmt.Errorf("%w: a blob %s of %d bytes", errContent, d.Digest, d.Size)
	}
	_, err := b.Receive(blobOf(d), r)
	return err
}

// Layout writes the image with a digest as a tar file of an OCI image layout. The store
// must hold the image.
func Layout(w io.Writer, s *store.Store, imageDigest string) error {
	all, err := graph(s, imageDigest)
	if err != nil {
		return fmt.Errorf("writing image %s: %w", imageDigest, err)
	}
	return WriteLayout(w, all, func(d ocispec.Descriptor) (io.ReadCloser, error) {
		return blobs{s}.Fetch(context.Background(), d)
	})
}

// WriteLayout writes a tar file of an OCI image layout with one image. all names its
// blobs, the manifest first; open returns the content of one. Equal blobs give equal
// files.
func WriteLayout(w io.Writer, all []ocispec.Descriptor, open func(ocispec.Descriptor) (io.ReadCloser, error)) error {
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: all[:1]})
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	version := []byte(`{"imageLayoutVersion":"` + ocispec.ImageLayoutVersion + `"}`)
	err = member(out, ocispec.ImageLayoutFile, int64(len(version)), bytes.NewReader(version))
	err = errors.Join(err, member(out, ocispec.ImageIndexFile, int64(len(index)), bytes.NewReader(index)))
	written := map[digest.Digest]bool{}
	for _, d := range all {
		if err != nil {
			return err
		}
		if written[d.Digest] { // an image may repeat a layer
			continue
		}
		written[d.Digest] = true
		r, failed := open(d)
		if failed != nil {
			return failed
		}
		err = member(out, path.Join(ocispec.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded()), d.Size, r)
		err = errors.Join(err, r.Close())
	}
	return errors.Join(err, out.Close())
}

func member(out *tar.Writer, name string, size int64, r io.Reader) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = io.Copy(out, r)
	}
	return err
}
