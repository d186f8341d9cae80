package lock_test

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestNewDraft(t *testing.T) {
	all := drafts(t)
	must.Hold(t, len(all) == 2, "got %d drafts", len(all))
	d := all[1]
	check.That(t, d.Cell.ID == "tiny-1.1-cp312" && d.Image.Name == "debian" && d.Runtime.Name == "registry",
		"got %s on %s and %s", d.Cell.ID, d.Image.Name, d.Runtime.Name)
	wantVars := map[string]string{"version": "1.1", "python": "3.12", "cp": "cp312", "rocm": "5.7", "rocm-path": "/usr"}
	check.Same(t, "variables", wantVars, d.Vars)
	type expanded struct {
		Env      map[string]string
		Requires recipe.Requirements
		Expect   recipe.Expect
	}
	wantSettings := expanded{
		Env:      map[string]string{"VERSION": "1.1", "ROOT": "/usr"},
		Requires: recipe.Requirements{Build: []string{"wheel", "numpy==1.1", "wheel", "cmake"}, Run: []string{"numpy"}},
		Expect: recipe.Expect{
			Packages: []string{"tiny"}, Extensions: []string{"tiny/cp312*.so"},
			Gates: recipe.GateSettings{
				"extension-present": map[string]any{"absent": []any{"tiny/no-cp312.so"}},
				"elf-needed":        map[string]any{"needed": []any{"libx.so.1.1"}, "forbidden": []any{"liby.so.1.1"}},
				"built-flags":       map[string]any{"rocm": "5.7"},
			},
		},
	}
	check.Same(t, "settings", wantSettings, expanded{d.Settings.Env, d.Settings.Requires, d.Settings.Expect})
	if d.Source != (lock.SourceNeed{Origin: recipe.Origin{Kind: recipe.Sdist}, Project: "tiny", Version: "1.1"}) || d.Epoch != 1709164800 || all[0].Epoch != 1686528000 {
		t.Errorf("source %+v of %d, and %d", d.Source, d.Epoch, all[0].Epoch)
	}
}

func TestDraftChoosesPatches(t *testing.T) {
	for i, want := range [][]string{{"old", "both"}, {"new", "both"}} {
		d := drafts(t)[i]
		var names []string
		for _, p := range d.Chosen() {
			names = append(names, p.Name)
		}
		check.Same(t, fmt.Sprintf("%s: patches", d.Cell.ID), want, names)
		for _, c := range d.Patches {
			check.That(t, c.Because != "", "%s: no reason for %s", d.Cell.ID, c.Patch.Name)
		}
		check.That(t, len(d.Patches) == 3, "%s: %d choices, 3 patches", d.Cell.ID, len(d.Patches))
	}
}

func TestNewDraftRefuses(t *testing.T) {
	python := func(is string) func(*lock.Catalogue) {
		return func(c *lock.Catalogue) { c.Images[0].Provides["python"] = image.Fact{Is: is, Probe: "x"} }
	}
	conditional := func(name string) func(*lock.Catalogue) {
		return func(c *lock.Catalogue) {
			c.Patches["tiny"] = []patch.Patch{{Name: "p", When: map[string]string{name: "1"}}}
		}
	}
	for name, c := range map[string]struct {
		replace []string
		change  func(*lock.Catalogue)
		want    []string
	}{
		"no such images":  {[]string{"image: debian", "image: debain", "runtime: registry", "runtime: register"}, nil, []string{`recipes/tiny.yaml: unknown image "debain"`, `unknown image "register"`}},
		"image disagrees": {nil, python("3.9"), []string{"cell tiny-1.0-cp311 needs python 3.11, but image debian provides 3.9"}},
		"two disagree": {
			nil,
			func(c *lock.Catalogue) { python("3.9")(c); c.Images[0].Provides["version"] = image.Fact{Is: "2"} },
			[]string{"needs python 3.11, but image debian provides 3.9", "needs version 1.0, but image debian provides 2"},
		},
		"unknown names": {
			[]string{"{{rocm-path}}", "{{rocm-root}}", "[numpy]", `["numpy=={{num}}"]`, "[tiny]", `["{{pack}}"]`, "{{rocm}}", "{{rcom}}"},
			nil,
			[]string{"recipes/tiny.yaml: ", `unknown name "rocm-root"`, `unknown name "num"`, `unknown name "pack"`, `unknown name "rcom"`},
		},
		"no such processor":         {[]string{"  packages: [tiny]\n", "  packages: [tiny]\n  cpu-isa: {allowed: [\"x86-64-v{{python}}\"]}\n"}, nil, []string{`recipes/tiny.yaml: expect.cpu-isa.allowed[0]: "x86-64-v3.11" is no level or extension of x86-64`}},
		"processor of a wildcard":   {[]string{"  packages: [tiny]\n", "  packages: [tiny]\n  cpu-isa: {allowed: [\"x86-64-{{zero}}\"]}\n"}, func(c *lock.Catalogue) { c.Images[0].Provides["zero"] = image.Fact{Is: "0.0"} }, []string{`expect.cpu-isa.allowed[0]: "x86-64-0.0" is no level or extension of x86-64`}},
		"patch on an unstated fact": {nil, conditional("gcc"), []string{`recipe tiny: patch p depends on "gcc"`}},
		"a date of another form":    {[]string{`"1.0": "2023-06-12"`, `"1.0": "12.6.2023"`}, nil, []string{`source.released: "12.6.2023" is not a date`}},
		"no date":                   {[]string{`"1.0": "2023-06-12", `, ""}, nil, []string{"recipes/tiny.yaml:17:13: source.released has no date for 1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			cat := tinyCatalogue()
			if c.change != nil {
				c.change(&cat)
			}
			d, err := lock.NewDraft(cells(t, c.replace...)[0], cat)
			must.Hold(t, diag.CodeOf(err) == diag.Usage, "class %v: %v", diag.CodeOf(err), err)
			for _, want := range c.want {
				check.That(t, strings.Contains(err.Error(), want), "got %v, want %s", err, want)
			}
			check.That(t, d.Cell.ID == "", "a fault and a draft: %+v", d)
		})
	}
}

// The image alone may state the Python of a cell.
func TestDraftWithThePythonOfTheImage(t *testing.T) {
	cat, c := tinyCatalogue(), cells(t)[0]
	cat.Images[0].Provides["python"] = image.Fact{Is: "3.11", Probe: "x"}
	delete(c.Axes, "python")
	delete(c.Names, "python")
	delete(c.Names, "cp")
	d, err := lock.NewDraft(c, cat)
	check.That(t, err == nil && d.Vars["cp"] == "cp311", "got %v, %v", d.Vars, err)
}

// The date of a git source is the date of its commit.
func TestDraftsWithoutADate(t *testing.T) {
	c := cells(t)[0]
	c.Recipe.From = recipe.Origin{Kind: recipe.Git, Repository: "https://git.example/tiny", Tag: "v{{version}}"}
	d, err := lock.NewDraft(c, tinyCatalogue())
	check.That(t, err == nil && d.Epoch == 0 && d.Source.Kind == recipe.Git, "%+v of %d, %v", d.Source, d.Epoch, err)
}

// NewDraft must not change its arguments.
func TestNewDraftChangesNoInput(t *testing.T) {
	cat, c := tinyCatalogue(), cells(t)[0]
	env := c.Recipe.Env["VERSION"]
	must.Get(lock.NewDraft(c, cat))(t)
	check.Same(t, "catalogue", tinyCatalogue(), cat)
	check.That(t, c.Recipe.Env["VERSION"] == env && c.Recipe.Requires.Build[1] == "numpy=={{version}}" && c.Recipe.Expect.Extensions[0] == "tiny/{{cp}}*.so",
		"the recipe changed: %+v", c.Recipe.Settings)
}
