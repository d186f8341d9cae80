package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/internal/app/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/pipelines"
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
		n, err := needs.Estimator{Held: s.heldBy(doctor.EngineState{Kind: kind}), Registries: s.Registries}.OfEntries([]lock.Entry{e}, store.Peek(home))
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
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(address(gone), &Session{}, doctor.Container); err != nil {
		t.Errorf("an image that Docker has pulled: %v", err)
	}
	if err := check(address(gone), &Session{Sources: Sources{Offline: true}}, doctor.Native); err != nil {
		t.Errorf("an image that the engine keeps: %v", err)
	}
}

// A mirror takes the place of a registry. It must hold the image with the locked digest.
func TestImagesArePullableFromAMirror(t *testing.T) {
	const config = `{"os": "linux", "architecture": "amd64"}`
	manifest := fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "config": {"mediaType": %q, "digest": %q, "size": %d}, "layers": []}`,
		ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageConfig, godigest.FromString(config), len(config))
	held, other := godigest.FromString(manifest).String(), godigest.FromString("other").String()
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/hub/rocm/ours/manifests/"+held, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		io.WriteString(w, manifest)
	})
	mux.HandleFunc("/v2/hub/rocm/ours/blobs/"+godigest.FromString(config).String(), func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, config)
	})
	mirror := httptest.NewServer(mux)
	defer mirror.Close()
	place := strings.TrimPrefix(mirror.URL, "http://") + "/hub"
	mirrors, err := oci.ParseMirrors([]string{place})
	if err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[string]string{held: "", other: "image " + place + "/rocm/ours:6.1@" + other + ": not in the registry for linux/amd64"} {
		s := &Session{Home: t.TempDir(), Sources: Sources{Registries: mirrors}}
		e := lock.Entry{Recipe: "tiny", ID: "tiny-6.1"}
		e.Image.Pin = lock.ImagePin{Name: "ours", Registry: "rocm/ours:6.1", Digest: digest}
		e.Runtime = e.Image
		n, err := s.estimator(t.Context(), s.heldBy(doctor.EngineState{Kind: doctor.Native})).OfEntries([]lock.Entry{e}, store.Peek(s.Home))
		if err != nil {
			t.Fatal(err)
		}
		err = (&workspace{Session: s}).pullable(t.Context(), n.Places)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", digest, err)
		}
	}
}
