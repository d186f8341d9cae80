package repo_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// tableBelow returns the cells of the table below a heading of docs/dependencies.md,
// without backticks.
func tableBelow(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("docs/dependencies.md")
	must.Succeed(t, err)
	_, below, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ := strings.Cut(below, "\n## ")
	var all [][]string
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|"); len(cells) > 4 {
			for i, c := range cells {
				cells[i] = strings.TrimSpace(c)
			}
			all = append(all, cells[1:len(cells)-1])
		}
	}
	must.Hold(t, len(all) >= 4, "the table below %q has only %d lines", heading, len(all))
	return all[2:] // without the header and its separator
}

// direct returns the version of every direct requirement in a go.mod.
func direct(t *testing.T, gomod string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", gomod).Output()
	must.Succeed(t, err)
	var mod struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	must.Succeed(t, json.Unmarshal(out, &mod))
	versions := map[string]string{}
	for _, r := range mod.Require {
		if !r.Indirect {
			versions[r.Path] = r.Version
		}
	}
	return versions
}

// The page lists exactly the modules required by go.mod, with their versions.
func TestEveryDependencyIsExplained(t *testing.T) {
	atRoot(t)
	want := direct(t, "go.mod")
	for _, r := range tableBelow(t, "Modules") {
		module, version := r[0], r[1]
		check.That(t, want[module] == version, "docs/dependencies.md has %s %s, go.mod %q", module, version, want[module])
		check.That(t, !slices.Contains(r, ""), "docs/dependencies.md leaves something out about %s", module)
		delete(want, module)
	}
	for module := range want {
		t.Errorf("docs/dependencies.md has nothing about %s", module)
	}
}

// The version of each other pin occurs in the file named on the page.
func TestEveryPinIsWhereThePageSays(t *testing.T) {
	atRoot(t)
	table := tableBelow(t, "What is pinned elsewhere")
	for _, r := range table {
		what, version, file := r[0], r[1], r[2]
		text, err := os.ReadFile(file)
		check.That(t, err == nil && strings.Contains(string(text), version),
			"docs/dependencies.md: %s %s is not pinned in %s: %v", what, version, file, err)
	}
	for module := range direct(t, "internal/build/native/engine/go.mod") {
		check.That(t, slices.ContainsFunc(table, func(r []string) bool { return r[0] == module }),
			"docs/dependencies.md has nothing about %s of internal/build/native/engine/go.mod", module)
	}
}
