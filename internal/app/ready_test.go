package app

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/internal/machine/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/pipelines"
	"builder/test/kit/must"
)

// A missing image must come from its registry. If the registry does not answer, the
// error appears before anything is fetched and has the digest of the image.
func TestImagesArePullableBeforeTheRun(t *testing.T) {
	const digest = "sha256:e50984d2e1ef6300e3fd51303839842189a077b10cb5cadff1923df10c61c493"
	home := t.TempDir()
	gone := httptest.NewServer(nil)
	here := httptest.NewServer(nil)
	defer here.Close()
	gone.Close()
	address := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") + "/ours:6.1" }
	check := func(registry string, s *Session, kind doctor.EngineKind) error {
		e := lock.Entry{Recipe: "tiny", ID: "tiny-6.1"}
		e.Image.Pin = lock.ImagePin{Name: "ours", Registry: registry, Digest: digest}
		e.Runtime = e.Image
		s.Home = home
		n, err := needs.Host{Held: s.heldBy(doctor.EngineState{Kind: kind}), Registries: s.Registries}.OfEntries([]lock.Entry{e}, store.Peek(home))
		if err != nil || len(n.Places) != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		return (&workspace{Session: s}).pullable(t.Context(), n.Places)
	}
	err := check(address(gone), &Session{}, doctor.Native)
	if diag.CodeOf(err) != diag.Fetch || !strings.HasPrefix(err.Error(), "image "+address(gone)+"@"+digest+": the engine does not have it, and its registry does not answer: ") {
		t.Errorf("a registry that is gone: %v", err)
	}
	if err := check(address(here), &Session{}, doctor.Native); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "not in the registry") {
		t.Errorf("a registry that answers 404: %v", err)
	}
	if err := check(address(here), &Session{Sources: Sources{Offline: true}}, doctor.Native); diag.CodeOf(err) != diag.Fetch {
		t.Errorf("offline: %v", err)
	}
	if err := check(address(gone), &Session{}, doctor.Named); err != nil {
		t.Errorf("nobody knows what another engine keeps and reaches: %v", err)
	}
	if err := check(address(gone), &Session{}, doctor.Container); diag.CodeOf(err) != diag.Fetch {
		t.Errorf("Docker has not pulled it: %v", err)
	}
	pulled := pipelines.Pulled(filepath.Join(home, "scratch"), digest)
	kept := filepath.Join(native.New(home, nil, native.Options{}).Look().StateDir, "worker", "content", "blobs", "sha256", digest[len("sha256:"):])
	for _, file := range []string{kept, pulled} {
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Succeed(t, os.WriteFile(file, nil, 0o644))
	}
	if err := check(address(gone), &Session{}, doctor.Container); err != nil {
		t.Errorf("an image that Docker has pulled: %v", err)
	}
	if err := check(address(gone), &Session{Sources: Sources{Offline: true}}, doctor.Native); err != nil {
		t.Errorf("an image that the engine keeps: %v", err)
	}
}

// mirrored serves an image as rocm/ours of a mirror. It returns the mirror, its address
// and the image's digest.
func mirrored(t *testing.T) (server *httptest.Server, place, digest string) {
	t.Helper()
	const config = `{"os": "linux", "architecture": "amd64"}`
	manifest := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "config": {"mediaType": %q, "digest": %q, "size": %d}, "layers": []}`,
		ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageConfig, godigest.FromString(config), len(config))
	digest = godigest.FromString(manifest).String()
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/hub/rocm/ours/manifests/"+digest, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		io.WriteString(w, manifest)
	})
	mux.HandleFunc("/v2/hub/rocm/ours/blobs/"+godigest.FromString(config).String(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, config)
	})
	server = httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server, strings.TrimPrefix(server.URL, "http://") + "/hub", digest
}

// ours returns an entry with the image of [mirrored].
func ours(digest string) lock.Entry {
	e := lock.Entry{Recipe: "tiny", ID: "tiny-6.1"}
	e.Image.Pin = lock.ImagePin{Name: "ours", Registry: "rocm/ours:6.1", Digest: digest}
	e.Runtime = e.Image
	return e
}

// A mirror takes the place of a registry. It must hold the image with the locked digest.
func TestImagesArePullableFromAMirror(t *testing.T) {
	_, place, held := mirrored(t)
	other := godigest.FromString("other").String()
	mirrors, err := oci.ParseMirrors([]string{place})
	must.Succeed(t, err)
	for digest, want := range map[string]string{held: "", other: "image " + place + "/rocm/ours:6.1@" + other + ": not in the registry for linux/amd64"} {
		s := &Session{Home: t.TempDir(), Sources: Sources{Registries: mirrors}}
		n, err := s.host(s.heldBy(doctor.EngineState{Kind: doctor.Native})).OfEntries([]lock.Entry{ours(digest)}, store.Peek(s.Home))
		must.Succeed(t, err)
		err = (&workspace{Session: s}).pullable(t.Context(), n.Places)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

// An exported image needs its registry once. Offline it comes from the store.
func TestAnExportedImageStaysInTheStore(t *testing.T) {
	server, place, held := mirrored(t)
	mirrors, err := oci.ParseMirrors([]string{place})
	must.Succeed(t, err)
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	w, err := (&Session{Home: t.TempDir(), Note: note, Sources: Sources{Registries: mirrors}}).open(t.Context())
	must.Succeed(t, err)
	defer w.close()
	entries := []lock.Entry{ours(held), ours(held)}
	ready := func() error {
		n, err := w.host(w.heldBy(doctor.EngineState{Kind: doctor.Native})).OfEntries(entries, w.store)
		return errors.Join(err, w.pullable(t.Context(), n.Places))
	}
	w.Offline = true
	if _, err := w.images(t.Context(), entries, false); diag.CodeOf(err) != diag.Fetch || ready() == nil {
		t.Errorf("offline without the image: %v", err)
	}
	if left, err := w.images(t.Context(), entries, true); err != nil || left != nil || len(notes) != 1 {
		t.Errorf("left out: %v, %v, %q", left, err, notes)
	}
	w.Offline = false
	pulled, err := w.images(t.Context(), entries, false)
	if err != nil || len(pulled) != 2 {
		t.Fatalf("%v, %v", pulled, err)
	}
	server.Close()
	w.Offline = true
	again, err := w.images(t.Context(), entries, false)
	if err := errors.Join(err, ready()); err != nil || !slices.Equal(again, pulled) {
		t.Errorf("from the store: %v, %v", again, err)
	}
}
