package native

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestParseEngineImage(t *testing.T) {
	digest := strings.Repeat("0f", 32)
	for text, want := range map[string]EngineImage{
		"":                                    {},
		"/a/e.tar@sha256:" + digest:           {"/a/e.tar", digest},
		"file:/a/e.tar.gz@sha256:" + digest:   {"/a/e.tar.gz", digest},
		"file:///a/e.tar.xz@sha256:" + digest: {"file:///a/e.tar.xz", digest},
		"https://u:p@site.example/e.tar.zst?token=1@sha256:" + digest: {"https://u:p@site.example/e.tar.zst?token=1", digest},
	} {
		got, err := ParseEngineImage(text)
		check.That(t, err == nil && got == want, "%q: %#v, %v", text, got, err)
	}
	for text, said := range map[string]string{
		"/a/e.tar":           "does not end in the digest",
		"/a/e.tar@sha256:0f": "does not end in the digest",
		"/a/e.tar@sha256:" + strings.ToUpper(digest):    "does not end in the digest",
		"@sha256:" + digest:                             "names no place of the image",
		"https://u:secret@site.example/e.zip@sha256:00": "does not end in the digest",
	} {
		_, err := ParseEngineImage(text)
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), said) && !strings.Contains(err.Error(), "secret"),
			"%q: %v", text, err)
	}
}

// The image comes from the network once, and later from the store. Offline only a file
// or the store counts. Bytes with another digest are refused.
func TestFetchImage(t *testing.T) {
	const file = "a tar file"
	asked := 0
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.WriteString(w, file)
	}))
	defer site.Close()
	sum := sha256.Sum256([]byte(file))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	local := must.File(t, "e.tar", file)
	open := func(home, place, digest string, offline bool) (string, error) {
		image := must.Get(ParseEngineImage(place + "@sha256:" + digest))(t)
		kept := must.Get(store.Open(filepath.Join(home, "store")))(t)
		path, err := image.Fetch(t.Context(), kept, offline)
		if err != nil {
			return diag.All(err)[0].Hint, err
		}
		data, err := os.ReadFile(path)
		return string(data), err
	}
	home, remote := t.TempDir(), site.URL+"/e.tar?token=secret"
	if hint, err := open(home, remote, right, true); diag.CodeOf(err) != diag.Fetch || strings.Contains(err.Error(), "secret") || !strings.Contains(hint, "builder engine up") {
		t.Errorf("offline: %v", err)
	}
	for range 2 {
		got, err := open(home, remote, right, false)
		check.That(t, err == nil && got == "a tar file", "%q, %v", got, err)
	}
	got, err := open(home, remote, right, true)
	check.That(t, err == nil && got == "a tar file" && asked == 1, "offline, from the store: %q, %v, asked %d times", got, err, asked)
	for _, place := range []string{local, "file://" + local} {
		got, err := open(t.TempDir(), place, right, true)
		check.That(t, err == nil && got == "a tar file", "offline, %s: %q, %v", place, got, err)
	}
	for _, place := range []string{remote, local} {
		if hint, err := open(t.TempDir(), place, wrong, false); diag.CodeOf(err) != diag.Fetch || !strings.Contains(hint, "or the digest of BUILDER_ENGINE_IMAGE") {
			t.Errorf("%s with another digest: %v, hint %q", place, err, hint)
		}
	}
}
