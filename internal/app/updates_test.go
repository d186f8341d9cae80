package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/base/owned"
	"builder/internal/input/pypi"
	"builder/internal/plan/recipe"
)

// tagged makes a repository with the tags v1.0-1, v1.1-1, v1.2rc1-1 and v2.0-1. The last
// is from 2026-11-22. Since 1.1 the text is good.
func tagged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git := func(day string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE="+day+"T12:00:00Z", "GIT_AUTHOR_DATE="+day+"T12:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("2025-01-01", "init", "-q")
	for _, c := range []struct{ tag, day, text string }{
		{"v1.0-1", "2025-01-01", "bad\n"}, {"v1.1-1", "2026-01-01", "good\n"}, {"v1.2rc1-1", "2026-02-01", "good\n"}, {"v2.0-1", "2026-11-22", "good\n"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "text"), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		git(c.day, "add", "text")
		git(c.day, "commit", "-q", "--allow-empty", "-m", c.tag)
		git(c.day, "tag", c.tag)
	}
	return dir
}

// homeWithUV makes a state directory in which a program stands for uv.
func homeWithUV(t *testing.T, program []byte) string {
	t.Helper()
	t.Setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")
	home := t.TempDir()
	tool := filepath.Join(home, "tools", "uv-"+strings.Split(pypi.Pin().Name, "-")[1])
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"uv": program, pypi.Pin().Name: nil} {
		if err := os.WriteFile(filepath.Join(tool, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned.Seal(tool, tool); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestUpdates: releases older than a week are proposed in the order of dependencies,
// with locks that pin them. A value that a rule excludes is named with the rule. The
// patch that upstream merged ends. A second question about the proposal finds nothing.
func TestUpdates(t *testing.T) {
	all, err := txtar.ParseFile("testdata/updates.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range all.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	uv, err := os.ReadFile(filepath.Join(dir, "uv"))
	if err != nil {
		t.Fatal(err)
	}
	home := homeWithUV(t, uv)
	ask := func(site, propose string) app.Updates {
		t.Helper()
		cat, err := catalogue.Load(site, catalogue.Taken{})
		if err != nil {
			t.Fatal(err)
		}
		s := &app.Session{Home: home, Catalogue: cat, Note: t.Logf}
		s.Overrides = map[string][]string{"library": {tagged(t)}}
		var rs []*recipe.Recipe
		for _, name := range []string{"program", "library"} {
			r, err := recipe.Find(cat.Recipes, name)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, r)
		}
		u, err := app.AskUpdates(t.Context(), s, app.UpdatesRequest{
			Recipes: rs, OlderThan: 7 * 24 * time.Hour, Now: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC),
			OSV: filepath.Join(dir, "osv"), Propose: propose,
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	proposal := filepath.Join(dir, "proposal")
	got := ask(filepath.Join(dir, "site"), proposal)
	want := app.Updates{
		Before: "2026-11-16", Unasked: []app.Unasked{}, Weak: []app.Weakness{},
		New: []app.Update{
			{Recipe: "library", Axis: "version", Value: "1.1", From: "tag v{{version}}-1 of https://git.invalid/library", Released: "2026-01-01", Cells: 1},
			{Recipe: "program", Axis: "frame", Value: "2.1", From: "frame=={{frame}}", Released: "2026-01-02", Cells: 1},
			{Recipe: "program", Axis: "frame", Value: "3.0", From: "frame=={{frame}}", Released: "2026-01-02", Because: []string{"7 lacks what frame 3 needs"}},
			{Recipe: "program", Axis: "lib", Value: "1.1", From: "recipe library", Released: "2026-01-01", Cells: 1},
		},
		Proposal: &app.Proposal{
			Directory: proposal,
			Values: []app.Proposed{
				{Recipe: "library", Axis: "version", Value: "1.1", Pins: 1},
				{Recipe: "program", Axis: "frame", Value: "2.1", Pins: 2},
				{Recipe: "program", Axis: "lib", Value: "1.1", Pins: 1},
			},
			Patches: []string{
				"library/mended: version 1.1 already contains it: " + proposal + `/patches/library/10-mended.yaml:6:5: text: search text matches 0 times, not 1: "bad\n": narrow the range`,
				`library/mended: closed: merged: ">=1.1"`,
			},
			Cells: []string{
				"library --recipes " + proposal + " --version 1.1",
				"program --recipes " + proposal + " --version 7 --lib 1.0 --frame 2.1",
				"program --recipes " + proposal + " --version 7 --lib 1.1 --frame 2.0",
				"program --recipes " + proposal + " --version 7 --lib 1.1 --frame 2.1",
			},
		},
	}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Dated" }, cmp.Ignore())); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	for file, want := range map[string]string{
		"recipes/library.yaml":           `    values: ["1.0", "1.1"] # kept`,
		"recipes/program.yaml":           "      - \"2.0\"\n      - \"2.1\"\n",
		"recipes/library.lock.json":      `"tag": "v1.1-1"`,
		"patches/library/10-mended.yaml": "merged: \">=1.1\"\nedits:",
		"updates.json":                   `"value": "3.0"`,
	} {
		text, err := os.ReadFile(filepath.Join(proposal, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s, %v:\n%s", file, want, err, text)
		}
	}
	again := ask(proposal, "")
	if len(again.New) != 1 || again.New[0].Value != "3.0" {
		t.Errorf("the proposal lacks %v", again.New)
	}
	weak := []app.Weakness{{Recipe: "program", Project: "frame", Version: "2.0", ID: "GHSA-1", Alias: "CVE-2026-1", Summary: "it opens a door", Fixed: "2.1"}}
	if diff := cmp.Diff(weak, again.Weak); diff != "" {
		t.Errorf("weaknesses (-want +got):\n%s", diff)
	}
}
