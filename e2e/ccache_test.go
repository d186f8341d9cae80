package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compilerCache builds one source twice with the compiler cache. Only the linker flags
// of the second cell differ, so it takes every object from the cache. Each cell is also
// rebuilt without the cache and must have the same bytes.
func compilerCache(b *tool) {
	site, err := filepath.Abs("../bench/site")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range []struct{ binding, hits string }{{"lazy", "0 / 7"}, {"now", "7 / 7"}} {
		out := filepath.Join(b.dir, "ccache-"+c.binding)
		b.want(0, "run", "kiwisolver", "--recipes", site, "--binding", c.binding, "--ccache", "--rebuild", "--out", out)
		cell := b.runJSON(out).Cells[0]
		contains(b.t, b.evidence(cell.Verdicts), cell.Artifacts[0].SHA256)
		dir := filepath.Join(out, cell.ID)
		log, err := os.ReadFile(filepath.Join(dir, "logs", "build.log"))
		if err != nil {
			b.t.Fatal(err)
		}
		contains(b.t, strings.Join(strings.Fields(string(log)), " "), "Local storage: Hits: "+c.hits)
		again, err := os.ReadFile(filepath.Join(dir, "logs", "again-build.log"))
		if err != nil || strings.Contains(string(again), "Local storage") {
			b.t.Errorf("%s: the second build used the cache, or left no log: %v", cell.ID, err)
		}
		if by := builtWith(b.t, cell.Artifacts[0].Path+".attestations"); by["ccache"] == "" {
			b.t.Errorf("%s: the provenance does not say that the cache was used: %v", cell.ID, by)
		}
	}
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
