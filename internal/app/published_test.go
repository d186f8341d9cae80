package app_test

import (
	"path/filepath"
	"testing"

	"builder/internal/app/release"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/publishing/publish"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
)

// published requires that cosign and in-toto verify what publish wrote to an index and to
// registries with and without the referrers API.
func (v validators) published(t *testing.T, key signing.Key, public string) {
	t.Helper()
	s, of := newSession(t, &builds{holds: "tiny"})
	s.Keys.Key = filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(t, key.Write(s.Keys.Key))
	out := outOf(t, s, of)
	index := t.TempDir()
	places := map[string]string{"index": "file:" + index}
	for name, referrers := range map[string]bool{"registry": true, "registry without referrers": false} {
		address, stop := ocitest.Serve(referrers)
		defer stop()
		places[name] = address
	}
	for name, place := range places {
		_, err := release.Publish(t.Context(), releaseOf(s), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		must.Hold(t, err == nil, "%s: %v", name, err)
		at := must.Get(publish.Open[publish.Catalogue](place, publish.Options{}))(t)
		found, err := at.Find(t.Context(), "tiny-1.0")
		must.Hold(t, err == nil, "%s: %v", name, err)
		path := filepath.Join(index, "files", "tiny", "tiny-1.0-py3-none-any.whl")
		if name != "index" {
			path, err = at.Bring(t.Context(), found.Key, t.TempDir(), func(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil })
			must.Hold(t, err == nil, "%s: %v", name, err)
		}
		v.accepts(t, "conformance", public, path)
	}
}
