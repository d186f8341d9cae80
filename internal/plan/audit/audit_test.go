package audit

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/plan/patch"
	"builder/internal/plan/sourcetree"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// replace returns a patch with one edit: it replaces search in a.h.
func replace(name, search, with string, when map[string]string) patch.Patch {
	return patch.Patch{
		Name: name, Reason: "r", Upstream: "https://host.example/1", When: when,
		Edits: []patch.Edit{{Kind: patch.Replace, File: "a.h", Search: search, Replace: with, Count: 1}},
	}
}

// cells returns two versions, each with two compilers.
func cells() []Cell {
	var all []Cell
	for _, v := range []string{"0.27.0", "0.28.1"} {
		for _, gcc := range []string{"11.4", "14.2"} {
			all = append(all, Cell{Version: v, Source: v, Facts: map[string]string{"version": v, "gcc": gcc, "rocm": "6.1"}})
		}
	}
	return all
}

// sources opens the trees of the two versions.
func sources(old, recent string) Open {
	return func(source string) (*sourcetree.Tree, error) {
		text := map[string]string{"0.27.0": old, "0.28.1": recent}[source]
		return sourcetree.Of(map[string][]byte{"a.h": []byte(text)}), nil
	}
}

func absent(string) (*sourcetree.Tree, error) { return nil, nil }

func always() map[string]string { return map[string]string{"rocm": ">=6.0"} }

func TestGoodCatalogue(t *testing.T) {
	p := replace("one", "#include <rccl.h>", "#include <rccl/rccl.h>", always())
	q := replace("two", "int a;", "long a;", map[string]string{"gcc": ">=13"})
	got := must.Get(Run(t.Context(), []patch.Patch{p, q}, cells(), sources("#include <rccl.h>\nint a;\n", "#include <rccl.h>\nint a;\n")))(t)
	want := Report{Rows: []Row{
		{"one", 4, 4, map[string]patch.State{"0.27.0": patch.Applied, "0.28.1": patch.Applied}},
		{"two", 2, 4, map[string]patch.State{"0.27.0": patch.Applied, "0.28.1": patch.Applied}},
	}}
	check.Same(t, "values", want, got)
}

func TestWithoutSourcesNothingIsClaimed(t *testing.T) {
	got, err := Run(t.Context(), []patch.Patch{replace("one", "x", "y", always())}, cells(), absent)
	check.That(t, err == nil && len(got.Findings) == 0 && got.Rows[0].States["0.28.1"] == patch.NotMeasured, "got %+v, %v", got, err)
}

// Each kind of problem in old catalogues of patches is planted once. The finding must
// name it and give a remedy.
func TestPlantedFaults(t *testing.T) {
	const text = "#include <rccl.h>\nint a;\nint b;\n"
	merged := replace("merged", "int a;", "long a;", always())
	merged.Merged = ">=0.25"
	for name, c := range map[string]struct {
		patches []patch.Patch
		open    Open
		want    []string
	}{
		"dead range": {
			[]patch.Patch{replace("dead", "int a;", "long a;", map[string]string{"rocm": ">=99"})},
			absent,
			[]string{"dead: applies to no cell: rocm >=99 never holds"},
		},
		"merged": {
			[]patch.Patch{merged},
			absent,
			[]string{"merged: is merged upstream (>=0.25) in every version of the catalogue"},
		},
		"merged in one version, unstated": {
			[]patch.Patch{replace("late", "int a;", "long a;", always())},
			sources(text, "#include <rccl.h>\nlong a;\n"),
			[]string{"late: version 0.28.1 already contains it: "},
		},
		"double match": {
			[]patch.Patch{replace("double", "int ", "long ", always())},
			sources(text, text),
			[]string{"double: does not apply to version 0.27.0: a.h: search text matches 2 times"},
		},
		"unreachable fact": {
			[]patch.Patch{replace("lost", "int a;", "long a;", map[string]string{"ninja": ">=1.10"})},
			absent,
			[]string{`lost depends on "ninja", which is not an axis or a fact of the image`},
		},
	} {
		report := must.Get(Run(t.Context(), c.patches, cells(), c.open))(t)
		said := fmt.Sprint(report.Findings)
		for _, want := range c.want {
			check.That(t, strings.Contains(said, want), "%s: %q is not in %s", name, want, said)
		}
		for _, f := range report.Findings {
			check.That(t, f.Remedy != "", "%s: %s has no remedy", name, f)
		}
	}
}
