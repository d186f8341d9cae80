package app

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/native"
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
		n, err := needs.OfEntries([]lock.Entry{e}, store.Peek(home), s.heldBy(doctor.EngineState{Kind: kind}))
		if err != nil || len(n.Places) != 1 {
			t.Fatalf("%+v, %v", n, err)
		}
		return (&workspace{Session: s}).pullable(t.Context(), n.Places)
	}
	err := check(address(gone), &Session{}, doctor.Native)
	if diag.CodeOf(err) != diag.Fetch || !strings.HasPrefix(err.Error(), "image "+address(gone)+"@"+digest+": the engine does not have it, and its registry does not answer: ") {
		t.Errorf("a registry that is gone: %v", err)
	}
	if err := check(address(here), &Session{}, doctor.Native); err != nil {
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
