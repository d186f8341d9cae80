package run

import (
	"testing"

	"builder/internal/evidence/attest"
)

// The provenance names the compiler cache exactly if the build step had it.
func TestSealerNamesTheCompilerCache(t *testing.T) {
	none := func(string) string { return "" }
	for had, want := range map[string]bool{"": false, `{"hits":0,"misses":0}`: true} {
		by := sealer{}.builder(Result{Ccache: had}, none)
		if got := by.Version[attest.CompilerCache] != ""; got != want {
			t.Errorf("%q: %v", had, by.Version)
		}
	}
}
