package builder_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// tableBelow returns the cells of the table of docs/dependencies.md below a heading,
// without what marks code.
func tableBelow(t *testing.T, heading string) [][]string {
	t.Helper()
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
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
	if len(all) < 4 {
		t.Fatalf("the table below %q has only %d lines", heading, len(all))
	}
	return all[2:] // behind the head and its line
}

// direct returns the version of every module that a go.mod asks for by itself.
func direct(t *testing.T, gomod string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", gomod).Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path, Version string
			Indirect      bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range mod.Require {
		if !r.Indirect {
			versions[r.Path] = r.Version
		}
	}
	return versions
}

// within reports whether a package or module belongs to a library of [owner].
func within(path, library string) bool {
	return path == library || strings.HasPrefix(path, library+"/")
}

// ownerOf is the owner of a module, and "several" where it has none.
func ownerOf(module string) string {
	for library, by := range owner {
		if within(module, library) {
			return by
		}
	}
	return "several"
}

// The page has every module that go.mod asks for, its version and its owner, and
// nothing else.
func TestEveryDependencyIsExplained(t *testing.T) {
	want := direct(t, "go.mod")
	for _, r := range tableBelow(t, "Modules") {
		module, version, by := r[0], r[1], r[2]
		if want[module] != version {
			t.Errorf("docs/dependencies.md has %s %s, go.mod %q", module, version, want[module])
		}
		if by != ownerOf(module) {
			t.Errorf("docs/dependencies.md says that %s belongs to %s, imports_test.go: %s", module, by, ownerOf(module))
		}
		if slices.Contains(r, "") {
			t.Errorf("docs/dependencies.md leaves something out about %s", module)
		}
		delete(want, module)
	}
	for module := range want {
		t.Errorf("docs/dependencies.md has nothing about %s", module)
	}
}

// A library that one package alone imports belongs to it.
func TestWhoImportsAloneIsTheOwner(t *testing.T) {
	all := packages(t)
	for module := range direct(t, "go.mod") {
		if ownerOf(module) != "several" {
			continue
		}
		var by []string
		for _, p := range all {
			imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			if slices.ContainsFunc(imports, func(path string) bool { return within(path, module) }) {
				by = append(by, p.ImportPath)
			}
		}
		if len(by) < 2 {
			t.Errorf("only %v imports %s: name the owner", by, module)
		}
	}
}

// What is no module of ours has its version where the page says.
func TestEveryPinIsWhereThePageSays(t *testing.T) {
	table := tableBelow(t, "What is pinned elsewhere")
	for _, r := range table {
		what, version, file := r[0], r[1], r[2]
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), version) {
			t.Errorf("docs/dependencies.md: %s %s is not pinned in %s: %v", what, version, file, err)
		}
	}
	for module := range direct(t, "engine/go.mod") {
		if !slices.ContainsFunc(table, func(r []string) bool { return r[0] == module }) {
			t.Errorf("docs/dependencies.md has nothing about %s of engine/go.mod", module)
		}
	}
}
