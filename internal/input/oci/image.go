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
	"builder/internal/base/retry"
	"builder/internal/input/store"
)

// Pull copies the linux/amd64 image with a reference such as rocm/ours@sha256:… from its
// registry to a store, and returns its blobs as [Held] does. It fetches only the blobs
// that the store lacks.
func Pull(ctx context.Context, name string, s *store.Store) ([]store.Blob, error) {
	repo, err := open(name)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "pulling image %q: %w", name, err)
	}
	if err := repo.Reference.ValidateReferenceAsDigest(); err != nil {
		return nil, diag.Errorf(diag.Usage, "pulling image %q: the reference has no digest", name)
	}
	_, err = retry.Do(ctx, retry.Default, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, mark(copyImage(ctx, repo, blobs{s}))
	})
	blobs, held := Held(s, repo.Reference.Reference)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("pulling image %q: %w", name, context.Cause(ctx))
	case err == nil && !held:
		err = errContent
	case err == nil:
		return blobs, nil
	}
	return nil, diag.Errorf(diag.Fetch, "pulling image %q: %w", name, plain(err)).
		WithHint("this host must reach the image's registry, or its mirror in BUILDER_MIRROR_REGISTRY")
}

// copyImage copies the image of repo's digest, and the index above it if the digest is
// that of an index.
func copyImage(ctx context.Context, repo *remote.Repository, to blobs) error {
	at := repo.Reference.Reference
	root, err := repo.Resolve(ctx, at)
	if err != nil {
		return err
	}
	data, err := content.FetchAll(ctx, repo.Manifests(), bounded(root))
	if err != nil {
		return err
	}
	if root.Digest != digest.Digest(at) {
		return fmt.Errorf("%w: digest %s instead of %s", errContent, root.Digest, at)
	}
	manifest, err := chosen(root, data)
	if err != nil {
		return err
	}
	if err := oras.CopyGraph(ctx, repo, to, manifest, oras.DefaultCopyGraphOptions); err != nil || manifest.Digest == root.Digest {
		return err
	}
	return to.Push(ctx, root, bytes.NewReader(data))
}

// bounded returns d with a size that [content.FetchAll] cannot exceed; content of another
// size is then an error.
func bounded(d ocispec.Descriptor) ocispec.Descriptor {
	d.Size = min(d.Size, maxManifest)
	return d
}

// chosen returns the descriptor of the linux/amd64 manifest. data is the content of root,
// an index or a manifest.
func chosen(root ocispec.Descriptor, data []byte) (ocispec.Descriptor, error) {
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("%w: %w", errContent, err)
	}
	if len(index.Manifests) == 0 {
		root.MediaType = index.MediaType
		if root.MediaType == "" {
			root.MediaType = ocispec.MediaTypeImageManifest
		}
		return root, nil
	}
	for _, m := range index.Manifests {
		if p := m.Platform; p != nil && p.OS == platform.OS && p.Architecture == platform.Architecture && m.Size <= maxManifest {
			return m, nil
		}
	}
	return ocispec.Descriptor{}, ErrAbsent
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
	if err := root.Digest.Validate(); err != nil {
		return nil, err
	}
	data, err := small(s, root)
	if err != nil {
		return nil, err
	}
	root.Size = int64(len(data))
	manifest, err := chosen(root, data)
	if err != nil {
		return nil, err
	}
	parts, err := content.Successors(context.Background(), blobs{s}, manifest)
	if err != nil {
		return nil, err
	}
	all := append([]ocispec.Descriptor{manifest}, parts...)
	if manifest.Digest != root.Digest {
		all = append(all, root)
	}
	return all, nil
}

// small reads a manifest or an index in the store.
func small(s *store.Store, d ocispec.Descriptor) ([]byte, error) {
	file, ok := s.Path(blobOf(d))
	if !ok {
		return nil, fs.ErrNotExist
	}
	if info, err := os.Stat(file); err != nil || info.Size() > maxManifest {
		return nil, errors.Join(err, errContent)
	}
	return os.ReadFile(file)
}

func blobOf(d ocispec.Descriptor) store.Blob {
	return store.Blob{Name: d.Digest.String(), Size: d.Size, SHA256: d.Digest.Encoded()}
}

// blobs is a store as the target of a copy.
type blobs struct{ *store.Store }

var _ content.Storage = blobs{}

func (b blobs) Exists(_ context.Context, d ocispec.Descriptor) (bool, error) {
	_, here := b.Path(blobOf(d))
	return here, nil
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
