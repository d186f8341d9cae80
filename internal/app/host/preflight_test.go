package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/input/oci"
	"builder/internal/input/store"
	"builder/internal/machine/doctor"
	"builder/internal/plan/lock"
	"builder/pipelines"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestLoopbackIsUp(t *testing.T) {
	up := net.Interface{Name: "lo", Flags: net.FlagLoopback | net.FlagUp}
	down := net.Interface{Name: "lo", Flags: net.FlagLoopback}
	for _, all := range [][]net.Interface{nil, {up}, {up, {Name: "eth0"}}} {
		must.Succeed(t, checkLoopback(all))
	}
	err := checkLoopback([]net.Interface{{Name: "eth0"}, down})
	check.That(t, diag.CodeOf(err) == diag.NoEngine && diag.All(err)[0].Hint == "ip link set lo up", "a host without loopback: %v", err)
}

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
	pullable := func(registry string, s Setup, kind doctor.EngineKind) error {
		e := lock.Entry{Recipe: "tiny", ID: "tiny-6.1"}
		e.Image.Pin = lock.ImagePin{Name: "ours", Registry: registry, Digest: digest}
		e.Runtime = e.Image
		s.Keys.Home = home
		return checkImages(t.Context(), s, heldBy(s, doctor.EngineState{Kind: kind}), imagesOf([]lock.Entry{e}))
	}
	var offline Setup
	offline.Sources.Offline = true
	err := pullable(address(gone), Setup{}, doctor.Native)
	if diag.CodeOf(err) != diag.Fetch || !strings.HasPrefix(err.Error(), "image "+address(gone)+"@"+digest+": the engine does not have it, and its registry does not answer: ") {
		t.Errorf("a registry that is gone: %v", err)
	}
	if err := pullable(address(here), Setup{}, doctor.Native); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "not in the registry") {
		t.Errorf("a registry that answers 404: %v", err)
	}
	err = pullable(address(here), offline, doctor.Native)
	check.That(t, diag.CodeOf(err) == diag.Fetch, "offline: %v", err)
	err = pullable(address(gone), Setup{}, doctor.Named)
	check.That(t, err == nil, "nobody knows what another engine keeps and reaches: %v", err)
	err = pullable(address(gone), Setup{}, doctor.Container)
	check.That(t, diag.CodeOf(err) == diag.Fetch, "Docker has not pulled it: %v", err)
	pulled := pipelines.Pulled(filepath.Join(home, "scratch"), digest)
	kept := filepath.Join(native.New(home, nil, native.Options{}).Look().StateDir, "worker", "content", "blobs", "sha256", digest[len("sha256:"):])
	for _, file := range []string{kept, pulled} {
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Succeed(t, os.WriteFile(file, nil, 0o644))
	}
	err = pullable(address(gone), Setup{}, doctor.Container)
	check.That(t, err == nil, "an image that Docker has pulled: %v", err)
	err = pullable(address(gone), offline, doctor.Native)
	check.That(t, err == nil, "an image that the engine keeps: %v", err)
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
	mirrors := must.Get(oci.ParseMirrors([]string{place}))(t)
	for digest, want := range map[string]string{held: "", other: "image " + place + "/rocm/ours:6.1@" + other + ": not in the registry for linux/amd64"} {
		var s Setup
		s.Keys.Home, s.Sources.Registries = t.TempDir(), mirrors
		err := checkImages(t.Context(), s, heldBy(s, doctor.EngineState{Kind: doctor.Native}), imagesOf([]lock.Entry{ours(digest)}))
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
	var s Setup
	s.Keys.Home, s.Keys.Note, s.Sources.Registries = t.TempDir(), note, mirrors
	w := must.Get(home.Open(t.Context(), s.Keys, s.NoInstall))(t)
	defer w.Close()
	entries := []lock.Entry{ours(held), ours(held)}
	ready := func() error {
		return checkImages(t.Context(), s, heldBy(s, doctor.EngineState{Kind: doctor.Native}), imagesOf(entries))
	}
	pull := func(without bool) ([]store.Blob, error) { return pullImages(t.Context(), s, w, entries, without) }
	s.Sources.Offline = true
	_, err = pull(false)
	check.That(t, diag.CodeOf(err) == diag.Fetch && ready() != nil, "offline without the image: %v", err)
	left, err := pull(true)
	check.That(t, err == nil && left == nil && len(notes) == 1, "left out: %v, %v, %q", left, err, notes)
	s.Sources.Offline = false
	pulled, err := pull(false)
	must.Hold(t, err == nil && len(pulled) == 2, "%v, %v", pulled, err)
	server.Close()
	s.Sources.Offline = true
	again, err := pull(false)
	err = errors.Join(err, ready())
	check.That(t, err == nil && slices.Equal(again, pulled), "from the store: %v, %v", again, err)
}
