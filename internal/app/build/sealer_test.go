package build

import (
	"testing"

	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/test/kit/check"
)

// The provenance names the compiler cache exactly if the build step had it.
func TestSealerNamesTheCompilerCache(t *testing.T) {
	none := func(string) string { return "" }
	for had, want := range map[string]bool{"": false, `{"hits":0,"misses":0}`: true} {
		by := sealer{}.builder(run.Result{Ccache: had}, none)
		check.That(t, by.Version[attest.CompilerCache] != "" == want, "%q: %v", had, by.Version)
	}
}
