package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"

	"builder/internal/base/diag"
	"builder/internal/input/store"
)

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// layered serves an image with two layers, one of them twice, for amd64 and arm64. It
// returns the registry, the repository, and the digests of the manifest and the index.
func layered(t *testing.T) (r *images, repository, manifest, index string) {
	t.Helper()
	r, host, _ := start(t)
	var manifests []object
	for _, arch := range []string{"arm64", "amd64"} {
		config := r.add(configType, "config-"+arch, object{"os": "linux", "architecture": arch})
		layers := []object{}
		for _, content := range []string{"first", "second", "first"} {
			d := r.add(ocispec.MediaTypeImageLayer, "layer-"+content, object{"layer": content})
			layers = append(layers, object{"mediaType": ocispec.MediaTypeImageLayer, "digest": d, "size": len(r.blobs[d])})
		}
		manifest = r.add(manifestType, "layered-"+arch, object{
			"schemaVersion": 2, "mediaType": manifestType, "layers": layers,
			"config": object{"mediaType": configType, "digest": config, "size": len(r.blobs[config])},
		})
		manifests = append(manifests, object{
			"mediaType": manifestType, "digest": manifest, "size": len(r.blobs[manifest]),
			"platform": object{"os": "linux", "architecture": arch},
		})
	}
	index = r.add(indexType, "layered", object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	return r, host + "/rocm/ours", manifest, index
}

func TestAnImageInTheStore(t *testing.T) {
	r, repository, manifest, index := layered(t)
	for name, digest := range map[string]string{"manifest": manifest, "index": index} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			if _, held := Held(s, digest); held {
				t.Fatal("an empty store has the image")
			}
			pulled, err := Pull(t.Context(), repository+":6.1@"+digest, s)
			if err != nil {
				t.Fatal(err)
			}
			held, all := Held(s, digest)
			if !all || !slices.Equal(held, pulled) || held[0].SHA256 != manifest[len("sha256:"):] {
				t.Errorf("%v, then %v", pulled, held)
			}
			asked := r.seen.Load()
			if _, err := Pull(t.Context(), repository+"@"+digest, s); err != nil {
				t.Error(err)
			}
			if again := r.seen.Load() - asked; again > 3 {
				t.Errorf("the second pull made %d requests", again)
			}
			checkLayout(t, s, digest, manifest)
			for _, b := range held {
				path, _ := s.Path(b)
				if err := os.Rename(path, path+"x"); err != nil {
					t.Fatal(err)
				}
				if _, all := Held(s, digest); all {
					t.Errorf("the store has the image without %s", b.SHA256)
				}
				if err := os.Rename(path+"x", path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// checkLayout reads the archive of an image with oras.
func checkLayout(t *testing.T, s *store.Store, digest, manifest string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	var twice [2]bytes.Buffer
	if err := errors.Join(Layout(&twice[0], s, digest), Layout(&twice[1], s, digest), os.WriteFile(archive, twice[0].Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(twice[0].Bytes(), twice[1].Bytes()) {
		t.Error("two archives of one image differ")
	}
	layout, err := oci.NewFromTar(t.Context(), archive)
	if err != nil {
		t.Fatal(err)
	}
	found, err := layout.Resolve(t.Context(), manifest)
	if err != nil || found.Digest.String() != manifest {
		t.Errorf("oras finds %v: %v", found.Digest, err)
	}
	members := map[string]int{}
	for in := tar.NewReader(&twice[0]); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if members[h.Name]++; members[h.Name] > 1 {
			t.Errorf("%s is there twice", h.Name)
		}
		if dir, name := filepath.Split(h.Name); dir == "blobs/sha256/" {
			data, err := io.ReadAll(in)
			if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != name {
				t.Errorf("%s: %v", h.Name, err)
			}
		}
	}
}

// A registry can withhold an image, and cannot replace a part of it.
func TestAPulledImageIsTheLockedOne(t *testing.T) {
	r, repository, manifest, _ := layered(t)
	for name, alter := range map[string]func(digest string, data []byte) []byte{
		"another manifest": func(d string, data []byte) []byte {
			if d == manifest {
				return bytes.Replace(data, []byte("sha256"), []byte("sha512"), 1)
			}
			return data
		},
		"another layer": func(_ string, data []byte) []byte { return bytes.Replace(data, []byte("second"), []byte("secnod"), 1) },
		"no layer": func(_ string, data []byte) []byte {
			if json.Valid(data) && bytes.Contains(data, []byte(`{"layer":"second"}`)) {
				return nil
			}
			return data
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.alter = alter
			defer func() { r.alter = nil }()
			s := openStore(t)
			if _, err := Pull(t.Context(), repository+"@"+manifest, s); diag.CodeOf(err) != diag.Fetch {
				t.Errorf("%v", err)
			}
			if _, held := Held(s, manifest); held {
				t.Error("the store has the image")
			}
		})
	}
	s := openStore(t)
	if _, err := Pull(t.Context(), repository+":layered", s); diag.CodeOf(err) != diag.Usage {
		t.Errorf("a tag: %v", err)
	}
	arm := r.add(indexType, "arm", object{"schemaVersion": 2, "mediaType": indexType, "manifests": []object{{
		"mediaType": manifestType, "digest": manifest, "size": len(r.blobs[manifest]), "platform": object{"os": "linux", "architecture": "arm64"},
	}}})
	if _, err := Pull(t.Context(), repository+"@"+arm, s); !errors.Is(err, ErrAbsent) {
		t.Errorf("an index for arm64 alone: %v", err)
	}
}
