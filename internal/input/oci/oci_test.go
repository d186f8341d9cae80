package oci

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

const (
	indexType    = ocispec.MediaTypeImageIndex
	manifestType = ocispec.MediaTypeImageManifest
)

type object = map[string]any

var quick = retry.Policy{Tries: 3, First: time.Millisecond, Most: time.Millisecond}

// addImage pushes an image for an architecture, with its name as the tag.
func (p *keeper) addImage(t *testing.T, arch string, layers ...string) ocispec.Descriptor {
	t.Helper()
	repo := p.open(t).repo
	blob := func(mediaType, text string) ocispec.Descriptor {
		return must.Get(oras.PushBytes(t.Context(), repo.Blobs(), mediaType, []byte(text)))(t)
	}
	config := blob(ocispec.MediaTypeImageConfig, `{"os":"linux","architecture":"`+arch+`"}`)
	o := oras.PackManifestOptions{ConfigDescriptor: &config}
	for _, text := range layers {
		o.Layers = append(o.Layers, blob(ocispec.MediaTypeImageLayer, text))
	}
	d := must.Get(oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "", o))(t)
	must.Succeed(t, repo.Tag(t.Context(), d, arch))
	d.Platform = &ocispec.Platform{OS: "linux", Architecture: arch}
	return d
}

// addIndex pushes an index of images under a tag and returns its digest.
func (p *keeper) addIndex(t *testing.T, tag string, images ...ocispec.Descriptor) string {
	t.Helper()
	data := must.Get(json.Marshal(object{"schemaVersion": 2, "mediaType": indexType, "manifests": images}))(t)
	d := must.Get(oras.TagBytes(t.Context(), p.open(t).repo, indexType, data, tag))(t)
	return d.Digest.String()
}

// images starts a registry with images of two layers, one of them twice, for arm64 and
// amd64. It returns the repository, and the digests of the manifest and the index.
func images(t *testing.T) (at *keeper, repository, amd64, index string) {
	at = newPlace(t, true)
	layers := []string{"first", "second", "first"}
	arm, amd := at.addImage(t, "arm64", layers...), at.addImage(t, "amd64", layers...)
	index = at.addIndex(t, "both", arm, amd)
	return at, at.addr + "/wheels/horovod", amd.Digest.String(), index
}

func TestResolve(t *testing.T) {
	_, repository, amd64, _ := images(t)
	for _, reference := range []string{":both", ":amd64", "@" + amd64} {
		got, err := resolve(t.Context(), repository+reference, time.Minute, Options{retry: quick})
		check.That(t, err == nil && got == amd64, "%s: got %q, %v", reference, got, err)
		err = Find(t.Context(), repository+reference)
		check.That(t, err == nil, "%s: %v", reference, err)
	}
	err := Find(t.Context(), repository+":gone")
	check.That(t, errors.Is(err, ErrAbsent), "a missing image: %v", err)
}

func TestResolveFails(t *testing.T) {
	at, repository, _, _ := images(t)
	for _, c := range []struct {
		reference, want string
		code            diag.Code
	}{
		{repository + ":none", "not in the registry", diag.Fetch},
		{repository + ":arm64", "for linux/amd64", diag.Fetch},
		{"127.0.0.1:1/rocm/dev:both", "refused", diag.Fetch},
		{repository, "no tag and no digest", diag.Usage},
		{at.addr + "/ROCM:x:y", "invalid", diag.Usage},
		{"", "invalid", diag.Usage},
	} {
		at.forget()
		_, err := resolve(t.Context(), c.reference, time.Minute, Options{retry: quick})
		check.That(t, err != nil && diag.CodeOf(err) == c.code && strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), c.reference), "%q: got %v (%v)", c.reference, err, diag.CodeOf(err))
		n := at.count("")
		check.That(t, n <= 4, "%q was asked for %d times", c.reference, n)
	}
}

func TestResolveDoesNotWaitForEver(t *testing.T) {
	at, repository, _, _ := images(t)
	hanging := make(chan struct{})
	defer close(hanging)
	at.breaks(func(http.ResponseWriter, *http.Request) bool { <-hanging; return true })
	_, err := resolve(t.Context(), repository+":both", 50*time.Millisecond, Options{})
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "did not answer within 50ms"), "a silent registry: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = resolve(ctx, repository+":both", time.Minute, Options{})
	check.That(t, diag.CodeOf(err) == diag.Interrupted, "a cancelled one: %v", err)
}

// Short names are completed as in other container tools.
func TestShortNames(t *testing.T) {
	for in, want := range map[string]string{
		"debian:12":                 "library/debian:12",
		"rocm/dev-ubuntu-22.04:6.1": "rocm/dev-ubuntu-22.04:6.1",
		"localhost/a:1":             "a:1",
		"localhost:5000/a:1":        "a:1",
		"registry.example/a/b:1":    "a/b:1",
	} {
		r, err := open(in, Options{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		check.Same(t, in, want, r.repo.Reference.Repository+":"+r.repo.Reference.Reference)
		host, _, named := strings.Cut(in, "/")
		check.That(t, !named || !strings.ContainsAny(host, ".:") || r.repo.Reference.Registry == host, "%s: the registry is %s", in, r.repo.Reference.Registry)
	}
}

func TestMirrors(t *testing.T) {
	m := must.Get(ParseMirrors([]string{"localhost:5000/hub/", "other.example.org=mirror.example.org"}))(t)
	const digest = "@sha256:e50984d2e1ef6300e3fd51303839842189a077b10cb5cadff1923df10c61c493"
	for name, want := range map[string]string{
		"rocm/tensorflow:6.1" + digest:                   "localhost:5000/hub/rocm/tensorflow:6.1" + digest,
		hub() + "/rocm/tensorflow":                       "localhost:5000/hub/rocm/tensorflow",
		"debian:13":                                      "localhost:5000/hub/library/debian:13",
		"other.example.org/pypa/manylinux_2_28" + digest: "mirror.example.org/pypa/manylinux_2_28" + digest,
		"third.example.org/a/b:c":                        "third.example.org/a/b:c",
		"not a reference":                                "not a reference",
	} {
		check.Same(t, name, want, m.Reference(name))
	}
	check.Same(t, "without mirrors", "a/b:c", Mirrors(nil).Reference("a/b:c"))
	for _, text := range []string{"", "https://mirror.example.org", "mirror", "a b.c", "other.example.org=", "=mirror.example.org", "me:pw@mirror.example.org"} {
		m, err := ParseMirrors([]string{text})
		check.That(t, err != nil, "%q is accepted: %v", text, m)
	}
}
