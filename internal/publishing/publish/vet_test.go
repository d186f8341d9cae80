package publish

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A place offers only files that the statements name, with their signed digests and
// sizes. attest tests the statements themselves.
func TestVet(t *testing.T) {
	wheel := artifact.Artifact{Name: "tool-1.0-py3-none-any.whl", SHA256: "aa", Size: 5}
	notes := artifact.Artifact{Name: "notes.txt", SHA256: "bb", Size: 3}
	statement := func(key string, signed ...artifact.Artifact) (b attest.Bundle) {
		b.Provenance = &attest.Provenance{}
		b.Provenance.Definition.Internal.Key = key
		for _, f := range signed {
			s := attest.Subject{Name: f.Name, Digest: map[string]string{"sha256": f.SHA256}}
			s.Annotations.Size = f.Size
			b.Artifacts = append(b.Artifacts, s)
		}
		return b
	}
	changed := func(f artifact.Artifact, sum string, size int64) artifact.Artifact {
		f.SHA256, f.Size = sum, size
		return f
	}
	for name, c := range map[string]struct {
		said    attest.Bundle
		offered []artifact.Artifact
		says    string // "" if they are admitted
	}{
		"the signed files": {statement("k", wheel, notes), []artifact.Artifact{wheel, notes}, ""},
		"no stated size":   {statement("k", wheel), []artifact.Artifact{changed(wheel, "aa", 0)}, ""},
		"an unsigned file": {statement("k", wheel), []artifact.Artifact{wheel, notes}, `the file "notes.txt" beside it, with sha256 bb, is unsigned`},
		"other bytes":      {statement("k", wheel, notes), []artifact.Artifact{wheel, changed(notes, "cc", 3)}, "is unsigned"},
		"another size":     {statement("k", wheel), []artifact.Artifact{changed(wheel, "aa", 2<<30)}, "the source lists 2147483648 bytes, the signed size is 5"},
		"no signed size":   {statement("k", changed(wheel, "aa", 0)), []artifact.Artifact{wheel}, "its statement has no size"},
		"a missing file":   {statement("k", wheel, notes), []artifact.Artifact{wheel}, "notes.txt of the same cell is missing"},
		"of another entry": {statement("l", wheel), []artifact.Artifact{wheel}, "it was built from another entry"},
	} {
		files, err := admitted(c.offered, "k", c.said)
		if c.says == "" {
			check.That(t, err == nil && files[0].Size == wheel.Size, "%s: %+v, %v", name, files, err)
			continue
		}
		check.That(t, err != nil && strings.Contains(err.Error(), c.says), "%s: %v", name, err)
	}
}

// No place gives a wheel, over the network or not, before a vet admits it, and a place
// that others can change leaves nothing but statements.
func TestNothingIsTakenBeforeTheVet(t *testing.T) {
	refuse := errors.New("refused")
	for name, place := range catalogues(t) {
		b := bundle(t, "1.0")
		put(t, place, b, "candidate")
		places := []Source{place}
		if d, ok := place.(Directory); ok {
			files := http.FileServer(http.Dir(strings.TrimPrefix(d.String(), "file:")))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				check.That(t, !strings.HasSuffix(r.URL.Path, ".whl"), "the wheel is asked for")
				files.ServeHTTP(w, r)
			}))
			defer server.Close()
			kept := must.Get(store.Open(t.TempDir()))(t)
			remote := must.Get(Open[Source](server.URL, Options{Store: kept}))(t)
			places = append(places, remote)
		}
		for _, from := range places {
			dir := t.TempDir()
			vet := index.Vet(func(offered, said []artifact.Artifact) ([]artifact.Artifact, error) {
				check.That(t, len(said) == 2 && offered[0].Name == b.Wheel.Name, "%s: offered %+v, said %+v", name, offered, said)
				return nil, refuse
			})
			_, err := from.Bring(t.Context(), b.Entry.Key(), dir, vet)
			check.That(t, errors.Is(err, refuse), "%s: %v", name, err)
			_, err = os.Stat(filepath.Join(dir, b.Wheel.Name))
			check.That(t, os.IsNotExist(err), "%s: the wheel is there: %v", name, err)
		}
	}
}
