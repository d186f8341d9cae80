package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/content/oci"

	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func openStore(t *testing.T) *store.Store {
	t.Helper()
	return must.Get(store.Open(t.TempDir()))(t)
}

func TestAnImageInTheStore(t *testing.T) {
	at, repository, manifest, index := images(t)
	for name, digest := range map[string]string{"manifest": manifest, "index": index} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			if _, held := Held(s, digest); held {
				t.Fatal("an empty store has the image")
			}
			pulled, err := Pull(t.Context(), repository+":6.1@"+digest, s)
			must.Succeed(t, err)
			held, all := Held(s, digest)
			check.That(t, all && slices.Equal(held, pulled) && held[0].SHA256 == manifest[len("sha256:"):], "%v, then %v", pulled, held)
			at.forget()
			_, err = Pull(t.Context(), repository+"@"+digest, s)
			check.That(t, err == nil && at.count("") <= 3, "the second pull made %d requests: %v", at.count(""), err)
			checkLayout(t, s, digest, manifest)
			for _, b := range held {
				path, _ := s.Path(b)
				must.Succeed(t, os.Remove(path))
				_, all := Held(s, digest)
				check.That(t, !all, "the store has the image without %s", b.SHA256)
				_, err := Pull(t.Context(), repository+"@"+digest, s)
				check.That(t, err == nil, "without %s: %v", b.SHA256, err)
			}
		})
	}
}

// checkLayout reads the archive of an image with oras.
func checkLayout(t *testing.T, s *store.Store, digest, manifest string) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	var twice [2]bytes.Buffer
	must.Succeed(t, errors.Join(Layout(&twice[0], s, digest), Layout(&twice[1], s, digest), os.WriteFile(archive, twice[0].Bytes(), 0o644)))
	check.That(t, bytes.Equal(twice[0].Bytes(), twice[1].Bytes()), "two archives of one image differ")
	layout := must.Get(oci.NewFromTar(t.Context(), archive))(t)
	found, err := layout.Resolve(t.Context(), manifest)
	check.That(t, err == nil && found.Digest.String() == manifest, "oras finds %v: %v", found.Digest, err)
	members := map[string]int{}
	for in := tar.NewReader(&twice[0]); ; {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		must.Succeed(t, err)
		members[h.Name]++
		check.That(t, members[h.Name] <= 1, "%s is there twice", h.Name)
		if dir, name := filepath.Split(h.Name); dir == "blobs/sha256/" {
			data, err := io.ReadAll(in)
			sum := sha256.Sum256(data)
			check.That(t, err == nil && hex.EncodeToString(sum[:]) == name, "%s: %v", h.Name, err)
		}
	}
}

// A registry can withhold an image, and cannot replace a part of it.
func TestAPulledImageIsTheLockedOne(t *testing.T) {
	at, repository, manifest, _ := images(t)
	layer := digest.FromString("second").String()
	for name, c := range map[string]struct {
		of     string
		answer string
	}{
		"another manifest": {manifest, `{"schemaVersion":2,"mediaType":"` + manifestType + `"}`},
		"another layer":    {layer, "secnod"},
		"a longer layer":   {layer, "second, and more"},
		"no layer":         {layer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
				switch {
				case !strings.HasSuffix(req.URL.Path, c.of):
					return false
				case c.answer == "":
					w.WriteHeader(http.StatusNotFound)
				default:
					w.Header().Set("Content-Type", manifestType)
					w.Header().Set("Docker-Content-Digest", c.of)
					_, _ = io.WriteString(w, c.answer)
				}
				return true
			})
			s := openStore(t)
			_, err := Pull(t.Context(), repository+"@"+manifest, s)
			check.That(t, diag.CodeOf(err) == diag.Fetch, "%v", err)
			_, held := Held(s, manifest)
			check.That(t, !held, "the store has the image")
		})
	}
	at.mend()
	s := openStore(t)
	_, err := Pull(t.Context(), repository+":both", s)
	check.That(t, diag.CodeOf(err) == diag.Usage, "a tag: %v", err)
	arm := at.addIndex(t, "arm", at.addImage(t, "arm64"))
	_, err = Pull(t.Context(), repository+"@"+arm, s)
	check.That(t, errors.Is(err, ErrAbsent), "an index for arm64 alone: %v", err)
	at.breaks(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Content-Length", fmt.Sprint(maxManifest+1))
		return true
	})
	at.forget()
	_, err = Pull(t.Context(), repository+"@"+manifest, s)
	check.That(t, errors.Is(err, errContent) && at.count("GET") == 0, "a large manifest: %v", err)
}
