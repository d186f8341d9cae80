package lock_test

import (
	"strings"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/must"
)

// The helpers of this file make a recipe with two cells, and the lock of both.

const written = `name: tiny
summary: a tiny recipe
homepage: https://example.com/tiny
id: "tiny-{{version}}-{{cp}}"
axes:
  - {name: version, about: release, values: ["1.0", "1.1"]}
  - {name: python, about: CPython release, values: ["3.11", "3.12"]}
compatible:
  - when: {version: "1.1"}
    needs: {python: "3.12"}
    because: its metadata says so
    source: https://example.com/tiny/releases
from: {kind: sdist}
source:
  project: tiny
  version: "{{version}}"
  released: {"1.0": "2023-06-12", "1.1": "2024-02-29"}
image: debian
runtime: registry
env: {VERSION: "{{version}}", ROOT: "{{rocm-path}}"}
build: make
requires:
  build: [wheel, "numpy=={{version}}", wheel]
  run: [numpy]
expect:
  packages: [tiny]
  extensions: ["tiny/{{cp}}*.so"]
  extension-present: {absent: ["tiny/no-{{cp}}.so"]}
  elf-needed: {needed: ["libx.so.{{version}}"], forbidden: ["liby.so.{{version}}"]}
  built-flags: {rocm: "{{rocm}}"}
variants:
  - when: {version: "1.1"}
    requires: {build: [cmake]}
`

const date = "20231114T221320Z"

// sha returns a digest that begins with the given digits.
func sha(digits string) string { return digits + strings.Repeat("0", 64-len(digits)) }

func pin(project, version, digits string) pypi.File {
	return pypi.File{Project: project, Version: version, Filename: project + "-" + version + ".tar.gz", Size: 7, SHA256: sha(digits)}
}

func source(f pypi.File) lock.SourcePin { return lock.SourcePin{File: f} }

func tinyImages() []image.Image {
	return []image.Image{
		{
			Name: "debian", Summary: "ours", Python: "/usr/bin/python3", Setup: "true\n", Env: map[string]string{"PATH": "/usr/bin"},
			Debian:   &image.Debian{Suites: []image.Suite{{Name: "trixie", Components: []string{"main"}}}, Packages: []string{"g++"}},
			Provides: map[string]image.Fact{"rocm": {Is: "5.7", Probe: "echo 5.7"}, "rocm-path": {Is: "/usr", Probe: "echo /usr"}},
		},
		{
			Name: "registry", Summary: "theirs", Python: "/usr/bin/python3", Env: map[string]string{"PATH": "/usr/bin"},
			Registry: "registry.example/base:1", Provides: map[string]image.Fact{},
		},
	}
}

func tinyPatches() []patch.Patch {
	edits := []patch.Edit{{Kind: patch.Append, File: "Makefile", Text: "x\n"}}
	return []patch.Patch{
		{Name: "old", Reason: "it is old", Upstream: "https://example.com/1", When: map[string]string{"version": "<1.1"}, Edits: edits},
		{Name: "new", Reason: "it is new", Upstream: "https://example.com/2", When: map[string]string{"version": ">=1.1"}, Edits: edits},
		{Name: "both", Reason: "it is there", Upstream: "https://example.com/3", When: map[string]string{"rocm": "5.7"}, Edits: edits},
	}
}

func tinyCatalogue() lock.Catalogue {
	return lock.Catalogue{Images: tinyImages(), Patches: map[string][]patch.Patch{"tiny": tinyPatches(), "other": {{Name: "of another"}}}}
}

// cells returns the cells of the recipe after replacements in its text.
func cells(t testing.TB, replace ...string) []matrix.Cell {
	t.Helper()
	text := strings.NewReplacer(replace...).Replace(written)
	must.Hold(t, len(replace) == 0 || text != written, "%q is not in the recipe", replace)
	r := must.Get(recipe.Parse("recipes/tiny.yaml", []byte(text), gate.Promises()))(t)
	all, _, err := matrix.Expand(r, matrix.Filter{"version": "all"})
	must.Succeed(t, err)
	return all
}

func drafts(t testing.TB, replace ...string) []lock.Draft {
	t.Helper()
	var all []lock.Draft
	for _, c := range cells(t, replace...) {
		d := must.Get(lock.NewDraft(c, tinyCatalogue()))(t)
		all = append(all, d)
	}
	return all
}

// tinyLock pins all needs of both cells.
func tinyLock() lock.File {
	return lock.File{
		Schema: lock.Schema, Recipe: "tiny",
		Sources: []lock.SourcePin{source(pin("tiny", "1.0", "a0")), source(pin("tiny", "1.1", "a1"))},
		Images: []lock.ImagePin{
			{
				Name: "debian", Date: date, Debian: tinyImages()[0].Debian,
				Packages: []deb.Package{
					{Name: "apt", Version: "3.0", Architecture: "amd64", Path: "pool/main/a/apt/apt_3.0_amd64.deb", Size: 3, SHA256: sha("b0"), Bootstrap: true},
					{Name: "g++", Version: "4:14~1+b2", Architecture: "amd64", Path: "pool/main/g/gcc/g++_14~1+b2_amd64.deb", Size: 4, SHA256: sha("b1")},
				},
			},
			{Name: "registry", Registry: "registry.example/base:1", Digest: "sha256:" + sha("c0")},
		},
		Python: []lock.PythonPin{
			{Python: "3.11", Requirements: []string{"numpy"}, Files: []pypi.File{pin("numpy", "2.0", "d0")}},
			{Python: "3.11", Requirements: []string{"numpy==1.0", "wheel"}, Files: []pypi.File{pin("numpy", "1.0", "d1"), pin("wheel", "0.45", "d2")}},
			{Python: "3.12", Requirements: []string{"cmake", "numpy==1.1", "wheel"}, Files: []pypi.File{pin("cmake", "3.0", "d3"), pin("numpy", "1.1", "d4"), pin("wheel", "0.45", "d2")}},
			{Python: "3.12", Requirements: []string{"numpy"}, Files: []pypi.File{pin("numpy", "2.0", "d0")}},
		},
	}
}
