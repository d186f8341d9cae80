package index_test

import (
	"testing"

	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/pagetest"
)

// The page must be usable with a screen reader, with a keyboard, and in high contrast.
func TestPageForEveryone(t *testing.T) {
	x, dir := open(t)
	for n := range 2 {
		p := publication(t, n, "wheel")
		p.Record.Gates["import"] = "pass"
		add(t, x, p)
	}
	_, err := x.Yank(t.Context(), key(0), "wrong sums")
	must.Succeed(t, err)
	page := read(t, dir, "index.html")
	for _, problem := range pagetest.Faults(page) {
		t.Error(problem)
	}
	for _, ground := range []string{"--ground", "--soft"} {
		for _, problem := range pagetest.Contrasts(page, pagetest.Text, ground, "--text", "--quiet", "--link") {
			t.Error(problem)
		}
	}
}

// The requirement "tool==1.0" also takes 1.0+openmp.
func TestPin(t *testing.T) {
	for version, want := range map[string]string{"1.0": "tool===1.0", "1.0+openmp": "tool==1.0+openmp"} {
		check.Same(t, version, want, index.Record{Project: "tool", Version: version}.Pin())
	}
}
