package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// compilerCache fails a build at its end and builds again with its objects. That build
// counts only after a second one without the cache has the same bytes. Another script, of
// the same source in the same image, finds no objects.
func compilerCache(b *tool) {
	site := must.Get(filepath.Abs("../compare/site"))(b.t)
	// Only a build with the cache has its directory.
	out := filepath.Join(b.dir, "ccache")
	failing := b.siteEnding(site, "failing", "  if mkdir /opt/builder/objects/tried; then exit 3; fi\n")
	b.want(5, "run", "kiwisolver", "--recipes", failing, "--ccache", "--out", out)
	b.want(0, "run", "kiwisolver", "--recipes", failing, "--ccache", "--out", out)
	cell := b.runJSON(out).Cells[0]
	statements := cell.Artifacts[0].Path + ".attestations"
	had, hits := madeWith(b.t, statements)
	check.That(b.t, had != "" && hits == `{"hits":7,"misses":0}`, "the provenance says ccache %q, %q", had, hits)
	dir := filepath.Join(out, cell.ID)
	r := b.want(6, "verify", dir)
	contains(b.t, r.stdout+r.stderr, "no second build without one has the same bytes")
	b.want(0, "verify", dir, "--rebuild", "--attach")
	b.want(0, "verify", dir)

	other := b.siteEnding(site, "other", "  true\n")
	b.want(0, "run", "kiwisolver", "--recipes", other, "--ccache", "--rebuild", "--out", out+"-other")
	cell = b.runJSON(out + "-other").Cells[0]
	_, hits = madeWith(b.t, cell.Artifacts[0].Path+".attestations")
	check.That(b.t, hits == `{"hits":0,"misses":7}`, "another script has %q", hits)
	b.want(0, "verify", filepath.Join(out+"-other", cell.ID))
}

// siteEnding returns a copy of a site in which the script of kiwisolver ends with more lines.
func (b *tool) siteEnding(site, name, lines string) string {
	b.t.Helper()
	copied := filepath.Join(b.dir, name)
	must.Succeed(b.t, os.CopyFS(copied, os.DirFS(site)))
	path := filepath.Join(copied, "recipes", "kiwisolver.yaml")
	const last = "bdist_wheel --dist-dir \"$BUILDER_DIST\"\n"
	text := contentOf(b, path)
	contains(b.t, text, last)
	must.Succeed(b.t, os.WriteFile(path, []byte(strings.Replace(text, last, last+lines, 1)), 0o644))
	return copied
}

// madeWith returns the version of the compiler cache and its hits from a provenance.
func madeWith(t *testing.T, dir string) (version, hits string) {
	t.Helper()
	var bundle struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	var statement struct {
		Predicate struct {
			Run struct {
				Builder struct {
					Version map[string]string `json:"version"`
				} `json:"builder"`
				Byproducts []struct {
					Name    string
					Content []byte
				} `json:"byproducts"`
			} `json:"runDetails"`
		} `json:"predicate"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "provenance.sigstore.json"))
	if err == nil {
		err = json.Unmarshal(data, &bundle)
	}
	if err == nil {
		err = json.Unmarshal(bundle.Envelope.Payload, &statement)
	}
	must.Succeed(t, err)
	for _, made := range statement.Predicate.Run.Byproducts {
		if made.Name == "ccache" {
			hits = string(made.Content)
		}
	}
	return statement.Predicate.Run.Builder.Version["ccache"], hits
}
