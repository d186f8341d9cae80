package index_test

import (
	"strings"
	"testing"
	"time"

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
	must.Get(x.Yank(t.Context(), key(0), "wrong sums"))(t)
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

// The newest wheel comes first. Each has its digest, its size for people, the axes that tell
// it from the others, and the command that verifies it.
func TestPageSaysWhichAndFromWhom(t *testing.T) {
	x, dir := open(t)
	for n := range 2 {
		p := publication(t, n, strings.Repeat("wheel", 1000))
		p.Record.Published = time.Date(2026, 11, 1+n, 0, 0, 0, 0, time.UTC)
		p.Record.Signers = []string{"b3duZXI="}
		add(t, x, p)
		add(t, x, p)
	}
	other := publication(t, 2, "wheel")
	other.Record.Key, other.Record.Project, other.Record.Published = key(2), "other", time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	add(t, x, other)
	page := read(t, dir, "index.html")
	first := must.Get(x.Find(t.Context(), key(1)))(t)
	at := 0
	for _, want := range []string{
		"<p>3 wheels, newest first</p>",
		`tool-1.1&#43;cuda13.0-py3-none-any.whl</a></h2>`, "· 5.0 KB · published 2026-11-02", "this one is for: <strong>version 1</strong>",
		`<code class="copy">` + first.SHA256, "Signed by the key <code>b3duZXI=</code>;",
		`builder verify tool-1.1&#43;cuda13.0-py3-none-any.whl --from <span class="base">ADDRESS/</span> --trust publisher.pub`,
		"published 2026-11-01", "version 0</strong>", "published 2026-10-01",
	} {
		next := strings.Index(page[at:], want)
		must.Hold(t, next >= 0, "the page lacks %s behind %d", want, at)
		at += next
	}
	check.That(t, !strings.Contains(page[at:], "this one is for"), "a wheel differs from none")
}

// The requirement "tool==1.0" also takes 1.0+openmp.
func TestPin(t *testing.T) {
	for version, want := range map[string]string{"1.0": "tool===1.0", "1.0+openmp": "tool==1.0+openmp"} {
		check.Same(t, version, want, index.Record{Project: "tool", Version: version}.Pin())
	}
}
