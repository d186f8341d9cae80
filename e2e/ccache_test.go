package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compilerCache builds one source with the compiler cache. Only the linker flags of the
// second cell differ, so it takes every object from the cache. The third build makes a
// header that the preprocessor finds before the one of the first builds. All headers of
// those are as they were, so ccache alone would take every object, and each would be
// wrong. Each cell is also rebuilt without the cache and must have the same bytes.
func compilerCache(b *tool) {
	site, err := filepath.Abs("../bench/site")
	if err != nil {
		b.t.Fatal(err)
	}
	shadowed := b.shadowed(site)
	for _, c := range []struct{ site, binding, logged string }{
		{site, "lazy", "Local storage: Hits: 0 / 7"}, {site, "now", "Local storage: Hits: 7 / 7"}, {shadowed, "now", "Local storage: Hits: 0 / 7"},
	} {
		out := filepath.Join(b.dir, "ccache-"+filepath.Base(c.site)+"-"+c.binding)
		b.want(0, "run", "kiwisolver", "--recipes", c.site, "--binding", c.binding, "--ccache", "--rebuild", "--out", out)
		cell := b.runJSON(out).Cells[0]
		contains(b.t, b.evidence(cell.Verdicts), cell.Artifacts[0].SHA256)
		dir := filepath.Join(out, cell.ID)
		log, err := os.ReadFile(filepath.Join(dir, "logs", "build.log"))
		if err != nil {
			b.t.Fatal(err)
		}
		contains(b.t, strings.Join(strings.Fields(string(log)), " "), c.logged)
		again, err := os.ReadFile(filepath.Join(dir, "logs", "again-build.log"))
		if err != nil || strings.Contains(string(again), "Local storage") {
			b.t.Errorf("%s: the second build used the cache, or left no log: %v", cell.ID, err)
		}
		if by := builtWith(b.t, cell.Artifacts[0].Path+".attestations"); by["ccache"] == "" {
			b.t.Errorf("%s: the provenance does not say that the cache was used: %v", cell.ID, by)
		}
	}
}

// shadowed returns a copy of the site in which the script of kiwisolver adds a Python.h
// to its own include directory. It includes the one of Python.
func (b *tool) shadowed(site string) string {
	b.t.Helper()
	copied := filepath.Join(b.dir, "shadowed")
	if err := os.CopyFS(copied, os.DirFS(site)); err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(copied, "recipes", "kiwisolver.yaml")
	const before, line = "build: |\n", `  printf '#pragma once\n#include_next <Python.h>\n__attribute__((used)) static const char shadow[] = "another";\n' >Python.h` + "\n"
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	contains(b.t, string(text), before)
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), before, before+line, 1)), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return copied
}

// builtWith returns the versions of a cell's build inputs from its provenance.
func builtWith(t *testing.T, dir string) map[string]string {
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
	if err != nil {
		t.Fatal(err)
	}
	return statement.Predicate.Run.Builder.Version
}
