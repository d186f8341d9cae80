package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// groups lists the folders with Go code, the highest first. A package imports only from
// its own group and from the groups below it.
var groups = []string{
	"cmd", "internal/app", "internal/publishing", "pipelines", "internal/build", "internal/evidence", "internal/view",
	"internal/gates", "internal/plan", "internal/machine", "internal/input", "internal/files", "internal/base",
	"recipes", "patches", "images", "profiles", "diagnoses",
}

// only lists libraries that a single group may import, because they shape the code
// around them.
var only = map[string]string{"dagger.io/dagger": "pipelines", "github.com/urfave/cli/v2": "cmd"}

type pkg struct {
	ImportPath, Doc                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

// packages returns every package of the module with code other than tests. Import paths
// are relative to the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports", "./...").Output()
	must.Hold(t, err == nil, "go list: %v", err)
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, "builder/")
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
}

// groupOf returns the index of a package's group, or -1 for a test package.
func groupOf(path string) int {
	return slices.IndexFunc(groups, func(g string) bool { return within(path, g) })
}

// within reports whether path equals above or lies below it.
func within(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }

func TestGroupsImportThoseBelow(t *testing.T) {
	atRoot(t)
	for _, p := range packages(t) {
		from := groupOf(p.ImportPath)
		for _, imported := range p.Imports {
			path, ours := strings.CutPrefix(imported, "builder/")
			to := groupOf(path)
			check.That(t, !ours || from < 0 || to < 0 || to >= from, "%s imports %s, which is in a group above it", p.ImportPath, path)
			by := only[imported]
			check.That(t, by == "" || within(p.ImportPath, by), "%s imports %s: only %s may", p.ImportPath, imported, by)
		}
		check.That(t, p.Doc != "", "%s has no package comment", p.ImportPath)
	}
}

// row matches a line of the table of groups in docs/architecture.md.
var row = regexp.MustCompile("(?m)^\\| `internal/(\\w+)` \\|.*\\| (.+) \\|$")

// The table of groups in docs/architecture.md lists the folders below internal in the
// order of [groups], and each package once.
func TestGroupsAreTheContentsOfThePage(t *testing.T) {
	atRoot(t)
	page := must.Get(os.ReadFile("docs/architecture.md"))(t)
	var order []string
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		order = append(order, "internal/"+m[1])
		entries := must.Get(os.ReadDir("internal/" + m[1]))(t)
		var want []string
		for _, e := range entries {
			if e.IsDir() && e.Name() != "testdata" {
				want = append(want, e.Name())
			}
		}
		got := strings.Fields(strings.ReplaceAll(m[2], "`", ""))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("docs/architecture.md: internal/%s holds %v, the page says %v", m[1], want, got)
		}
	}
	want := slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return !strings.HasPrefix(g, "internal/") })
	check.That(t, slices.Equal(order, want), "docs/architecture.md lists %v, the groups are %v", order, want)
	if entries, err := os.ReadDir("internal"); err != nil || len(entries) != len(order) {
		t.Errorf("internal has %d folders, %d are in the table: %v", len(entries), len(order), err)
	}
}
