package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A package made by oras is readable here.
func TestAPackageOfOras(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	f := file(t, "a.whl", []byte("wheel"))
	must.Succeed(t, r.repo.Push(t.Context(), f.descriptor(), strings.NewReader("wheel")))
	d, err := oras.PackManifest(t.Context(), r.repo, oras.PackManifestVersion1_1, wheelType, oras.PackManifestOptions{Layers: []ocispec.Descriptor{f.descriptor()}})
	must.Succeed(t, err)
	m, err := r.Manifest(t.Context(), d.Digest.String())
	check.That(t, err == nil && m.ArtifactType == wheelType && len(m.Files) == 1 && m.Files[0].Name == "a.whl", "%+v, %v", m, err)
}

// put pushes a manifest unchanged.
func put(t *testing.T, r *Repository, m any) string {
	t.Helper()
	data := must.Get(json.Marshal(m))(t)
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, data)
	must.Succeed(t, r.repo.Push(t.Context(), d, bytes.NewReader(data)))
	return d.Digest.String()
}

func layer(name string) object {
	return object{
		"mediaType": "application/zip", "digest": digest.FromString("x"), "size": 1,
		"annotations": object{"org.opencontainers.image.title": name},
	}
}

func bad(layers ...object) object {
	return object{
		"schemaVersion": 2, "mediaType": manifestType, "artifactType": wheelType, "layers": layers,
		"config": object{"mediaType": "application/vnd.oci.empty.v1+json", "digest": ocispec.DescriptorEmptyJSON.Digest, "size": 2},
	}
}

func TestManifestsThatAreNotTaken(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	with := func(key string, value any) object {
		l := layer("a")
		l[key] = value
		return l
	}
	for want, m := range map[string]any{
		`"../../x": the name is not a plain`: bad(layer("../../x")),
		`"/etc/passwd": the name`:            bad(layer("/etc/passwd")),
		`"..": the name`:                     bad(layer("..")),
		`"": the name`:                       bad(layer("")),
		`"a\\b": the name`:                   bad(layer(`a\b`)),
		`"a\x1b": the name`:                  bad(layer("a\x1b")),
		`two files have the name "a"`:        bad(layer("a"), layer("a")),
		`the size is -1`:                     bad(with("size", -1)),
		`is not a sha256`:                    bad(with("digest", "sha512:"+strings.Repeat("a", 128))),
		`the manifest has 257 files`:         bad(make([]object, 257)...),
		`not a package`:                      object{"schemaVersion": 2, "mediaType": indexType},
	} {
		_, err := r.Manifest(t.Context(), put(t, r, m))
		check.That(t, err != nil && strings.Contains(err.Error(), want) && diag.CodeOf(err) == diag.Fetch, "want %q, got %v", want, err)
	}
	for _, data := range []string{"", "[1]", "{", `{"schemaVersion":2}x`, `{"layers":1}`} {
		_, err := read([]byte(data))
		check.Fails(t, err, "not a manifest")
	}
	// Fetch refuses such a name even if a caller asks for it.
	dir := filepath.Join(t.TempDir(), "in", "here")
	must.Succeed(t, os.MkdirAll(dir, 0o700))
	f := file(t, "x", []byte("x"))
	must.Succeed(t, r.repo.Push(t.Context(), f.descriptor(), strings.NewReader("x")))
	for _, name := range []string{"../../x", "..", ".", "", "/tmp/x", "a/b", "a\x00"} {
		f.Name = name
		err := r.Fetch(t.Context(), f, dir)
		check.That(t, err != nil, "%q was fetched", name)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "../../*"))
	check.That(t, len(left) == 1, "left: %q", left)
}

func TestLargeManifests(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	push(t, r, sample(t, "a"))
	huge := bad(layer(strings.Repeat("x", 100)))
	huge["annotations"] = object{"x": strings.Repeat("y", maxManifest)}
	data, _ := json.Marshal(huge)
	for _, length := range []bool{true, false} {
		at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, "/manifests/huge") {
				return false
			}
			w.Header().Set("Content-Type", manifestType)
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
			if length || req.Method == http.MethodHead {
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			}
			if req.Method == http.MethodGet {
				_, _ = w.Write(data)
			}
			return true
		})
		_, err := r.Resolve(t.Context(), "huge")
		check.That(t, errors.Is(err, errdef.ErrSizeExceedsLimit), "got %v", err)
	}
}

func TestResolveInARepository(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	want := push(t, r, sample(t, "a"))
	got, err := r.Resolve(t.Context(), want)
	check.That(t, got == want && err == nil, "%s, %v", got, err)
	for _, reference := range []string{"v1", digest.FromString("other").String()} {
		_, err := r.Resolve(t.Context(), reference)
		check.That(t, errors.Is(err, ErrAbsent) && diag.CodeOf(err) == diag.Fetch, "%s: %v", reference, err)
	}
	for _, reference := range []string{"", "a/b", "sha256:abc", "x y", "md5:" + strings.Repeat("a", 32), "other@" + want} {
		got, err := r.Resolve(t.Context(), reference)
		check.That(t, err != nil, "%q: %s", reference, got)
	}
	empty := must.Get(OpenRepository("oci://"+at.addr+"/nothing/here", Options{retry: quick}))(t)
	_, err = empty.Resolve(t.Context(), "v1")
	check.That(t, errors.Is(err, ErrAbsent), "no repository: %v", err)
}

// The registry answers with other bytes than requested, or confirms a push with a wrong
// digest.
func TestWrongDigests(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	p := sample(t, "a")
	good := push(t, r, p)
	other := push(t, r, sample(t, "b"))
	must.Succeed(t, r.Tag(t.Context(), good, "v1", false))
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool { // the second manifest under the digest of the first
		if !strings.Contains(req.URL.Path, "/manifests/") {
			return false
		}
		answer := httptest.NewRecorder()
		moved := req.Clone(req.Context())
		moved.URL.Path = "/v2/wheels/horovod/manifests/" + other
		at.keeps.ServeHTTP(answer, moved)
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", good)
		w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		_, _ = w.Write(answer.Body.Bytes())
		return true
	})
	for _, reference := range []string{good, "v1"} {
		_, err := r.Resolve(t.Context(), reference)
		check.That(t, errors.Is(err, content.ErrMismatchedDigest), "%s: %v", reference, err)
	}
	_, err := r.Manifest(t.Context(), good)
	check.That(t, errors.Is(err, content.ErrMismatchedDigest), "got %v", err)
	at.breaks(on("PUT", "/manifests/", 10, func(w http.ResponseWriter) {
		w.Header().Set("Docker-Content-Digest", good)
		w.WriteHeader(http.StatusCreated)
	}))
	_, err = r.Push(t.Context(), sample(t, "c"))
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "digest mismatch"), "another digest for what was pushed: %v", err)
}

func TestFetchOfBadContent(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	p := sample(t, "a")
	push(t, r, p)
	f := p.Files[0]
	data, _ := os.ReadFile(f.Path)
	cut := func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, f.SHA256) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(f.Size))
		_, _ = w.Write(data[:1<<20])
		panic(http.ErrAbortHandler)
	}
	chunked := func(body []byte) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, f.SHA256) {
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				_, _ = w.Write(body)
				return true
			}
			return false
		}
	}
	wrong := bytes.Clone(data)
	wrong[len(wrong)/2] ^= 1
	for want, problem := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"unexpected EOF":      cut,
		": unexpected EOF":    chunked(data[:2<<20]),
		"mismatched digest":   chunked(wrong),
		"trailing data":       chunked(append(bytes.Clone(data), 0)),
		"Content-Length":      on("GET", f.SHA256, 9, says(200, "short")),
		"not in the registry": on("GET", f.SHA256, 9, says(404, "")),
		"403":                 on("GET", f.SHA256, 9, says(403, "")),
		"500":                 on("GET", f.SHA256, 9, says(500, "")),
	} {
		dir := t.TempDir()
		at.breaks(problem)
		err := r.Fetch(t.Context(), f, dir)
		check.That(t, err != nil && strings.Contains(err.Error(), want) && diag.CodeOf(err) == diag.Fetch, "want %q, got %v", want, err)
		left, _ := os.ReadDir(dir)
		check.That(t, len(left) == 0, "%s: left %v", want, left)
		at.mend()
		err = r.Fetch(t.Context(), f, dir)
		check.That(t, err == nil, "afterwards: %v", err)
		same(t, f.Path, filepath.Join(dir, f.Name))
	}
	first := true
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool { // first truncated, then complete
		if first && strings.Contains(req.URL.Path, f.SHA256) {
			first = false
			return cut(w, req)
		}
		return false
	})
	err := r.Fetch(t.Context(), f, t.TempDir())
	check.That(t, err == nil && !first, "after a cut: %v", err)
}

func TestFetchReplacesWhatIsThere(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	p := sample(t, "a")
	push(t, r, p)
	f, dir := p.Files[0], t.TempDir()
	path := filepath.Join(dir, f.Name)
	outside := filepath.Join(t.TempDir(), "outside")
	for _, prepare := range []func() error{
		func() error { return os.WriteFile(path, noise("z", 3<<20), 0o600) },
		func() error { return errors.Join(os.Remove(path), os.Symlink(outside, path)) },
	} {
		must.Succeed(t, errors.Join(prepare(), r.Fetch(t.Context(), f, dir)))
		same(t, f.Path, path)
		info, err := os.Lstat(path)
		check.That(t, err == nil && info.Mode().IsRegular(), "it is no file: %v", err)
	}
	_, err := os.Stat(outside)
	check.That(t, errors.Is(err, os.ErrNotExist), "it wrote through a link: %v", err)
}

// Documents of other tools and wrong lists do not hide the valid referrers.
func TestForeignReferrers(t *testing.T) {
	at := newPlace(t, true)
	r := at.open(t)
	p := sample(t, "a")
	want := push(t, r, p)
	foreign := bad(object{"mediaType": "application/json", "digest": digest.FromString("x"), "size": 1})
	foreign["subject"] = object{"mediaType": manifestType, "digest": want, "size": 7}
	put(t, r, foreign)
	for _, answer := range []func(http.ResponseWriter){nil, list(digest.Digest(want), digest.FromString("none"), "../x")} {
		left := 2
		if answer != nil {
			at.breaks(on("GET", "/referrers/", 1, answer))
			left = 0
		}
		found, err := r.Referrers(t.Context(), want)
		check.That(t, err == nil && len(found) == left, "%d referrers, %v", len(found), err)
	}
	var many []digest.Digest
	for i := range maxReferrers + 1 {
		many = append(many, digest.FromString(fmt.Sprint(i)))
	}
	at.breaks(on("GET", "/referrers/", 1, list(many...)))
	_, err := r.Referrers(t.Context(), want)
	check.That(t, errors.Is(err, errContent), "a long list: %v", err)
	at.mend()
	at.breaks(on("GET", "/manifests/", 99, says(403, "")))
	_, err = r.Referrers(t.Context(), want)
	check.That(t, diag.CodeOf(err) == diag.Fetch, "documents that cannot be read: %v", err)
}

// list answers with a list of referrers.
func list(all ...digest.Digest) func(http.ResponseWriter) {
	l := ocispec.Index{MediaType: indexType}
	for _, d := range all {
		l.Manifests = append(l.Manifests, ocispec.Descriptor{Digest: d})
	}
	answer, _ := json.Marshal(l)
	return func(w http.ResponseWriter) { w.Header().Set("Content-Type", indexType); _, _ = w.Write(answer) }
}
