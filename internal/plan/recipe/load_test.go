package recipe_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// good is a valid recipe. Tests refer to its line numbers.
const good = `# yaml-language-server: $schema=schema.json
name: tool
summary: A tool
homepage: https://mirror.example/tool
id: "tool-{{version}}-{{ cp }}"
axes:
  - name: version
    about: release
    values: ["2.10", "2.9"]
  - {name: python, about: CPython, values: ["3.12"]}
compatible:
  - when: {version: "2.10"}
    needs: {python: ">=3.10"}
    because: it says so
    source: https://mirror.example/why
from: {kind: sdist}
source:
  project: tool
  version: "{{version}}"
  released: {"2.10": "2025-01-02", "2.9": "2024-01-02"}
build: make "{{this is for the shell}}"
env: {A: "{{rocm-path}}"}
expect: {launcher: mpi}
variants:
  - when: {version: "<2.10"}
    env: {B: "2"}
`

func parse(t *testing.T, text string) *recipe.Recipe {
	t.Helper()
	return must.Get(recipe.Parse("recipes/tool.yaml", []byte(text), gate.Promises()))(t)
}

// messages lists the errors of err as printed: position, text and hint.
func messages(err error) []string {
	var all []string
	for _, e := range diag.All(err) {
		text := e.Error()
		if e.Hint != "" {
			text += " | " + e.Hint
		}
		all = append(all, text)
	}
	return all
}

func TestParse(t *testing.T) {
	r := parse(t, good)
	check.That(t, r.Name == "tool" && r.Build == `make "{{this is for the shell}}"` && r.Env["A"] == "{{rocm-path}}" && r.Source.Released["2.10"] == "2025-01-02",
		"got %+v", r)
	check.Same(t, "axes", "version python", strings.Join(r.AxisNames(), " "))
	a, ok := r.Axis("version")
	check.That(t, ok && slices.Equal(a.Values, []string{"2.10", "2.9"}), "the axis is %+v", a)
	a, ok = r.Axis("rocm")
	check.That(t, !ok, "found the axis %+v", a)
}

// Requirements of PEP 508, and templates in all texts.
func TestTextsAreAccepted(t *testing.T) {
	for _, requires := range []string{
		"numpy", "numpy>=1.26,<2", "numpy >= 1.26 , != 1.27.*", "tensorflow[and-cuda]==2.18.1", "a.b_c-d~=1.0", "x (>=1)", "ray[default,serve]",
		`tomli>=1; python_version < "3.11"`, "x===1+local", "x==1!2.0", "{{framework}}", "tensorflow-rocm=={{tensorflow}}.570", "x @ https://mirror.example/x.whl",
	} {
		text := strings.Replace(good, "build: make", "requires: {build: ['"+requires+"']}\nbuild: make", 1)
		text = strings.Replace(text, "launcher: mpi", `launcher: mpi, cpu-isa: {allowed: [x86-64-v3, f16c, "{{cpu}}", "x86-64-{{level}}"]}, glibc: "{{glibc}}", elf-needed: {needed: ["lib*.so.[0-9]"]}`, 1)
		_, err := recipe.Parse("tool.yaml", []byte(text), gate.Promises())
		check.That(t, err == nil, "%s: %v", requires, err)
	}
}

func TestParseSaysWhereAndWhat(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		// Package decode refuses unknown keys and wrong types.
		"unknown key in a list": {"    about:", "    abuot:", `8:5: unknown key "abuot" | did you mean "about"? known: about, finer, name, option, values`},
		"unquoted version":      {`["2.10", "2.9"]`, `[2.10, "2.9"]`, `9:14: quote the version 2.10 | write "2.10": YAML reads 2.10 as a number`},
		// Rules specific to recipes.
		"another file's name":        {"name: tool", "name: fool", `2:7: the recipe has the name "fool", and its file "tool"`},
		"empty summary":              {"summary: A tool", `summary: ""`, `3:10: summary is missing`},
		"no build script":            {`build: make "{{this is for the shell}}"`, "", `2:1: build is missing`},
		"a license in words":         {"build: make", "license: Apache License 2.0\nbuild: make", `21:10: license "Apache License 2.0" is no SPDX expression`},
		"no homepage":                {"homepage: https://mirror.example/tool\n", "", `2:1: homepage is missing`},
		"no version of the source":   {"  version: \"{{version}}\"\n", "", `18:3: source.version is missing`},
		"no project":                 {"  project: tool\n", "", `18:3: source.project is missing`},
		"another kind of source":     {"sdist", "svn", `from.kind: "svn" is not sdist or git or archive or wheel`},
		"no dates":                   {`{"2.10": "2025-01-02", "2.9": "2024-01-02"}`, "{}", `20:13: source.released is missing`},
		"axis without about":         {"    about: release\n", "", `7:5: axes.about is missing`},
		"axis without values":        {`["3.12"]`, "[]", `10:44: axes.values is empty: write at least one`},
		"axis twice":                 {"name: python", "name: version", `10:12: axis "version" occurs twice`},
		"value twice":                {`["2.10", "2.9"]`, `["2.10", "2.10"]`, `9:22: value "2.10" is empty or occurs twice`},
		"value for every value":      {`"2.9"]`, `all]`, `9:22: all cannot be a value: --version all has a meaning for every axis`},
		"empty value":                {`"2.9"]`, `""]`, `9:22: value "" is empty or occurs twice`},
		"rule without a reason":      {"    because: it says so\n", "", `12:5: compatible.because is missing`},
		"rule without a source":      {"    source: https://mirror.example/why\n", "", `12:5: compatible.source is missing`},
		"rule without a condition":   {`    needs: {python: ">=3.10"}` + "\n", "", `12:5: a rule must have either needs or one-of`},
		"rule with a fault in a row": {`needs: {python: ">=3.10"}`, `one-of: [{pyton: "3.12"}]`, `13:22: unknown axis "pyton"`},
		"rule of both kinds":         {`needs: {python: ">=3.10"}`, `{needs: {python: ">=3.10"}, one-of: [{python: "3.12"}]}`[1:26] + "\n    one-of: [{python: \"3.12\"}]", `12:5: a rule must have either needs or one-of`},
		"name of an axis":            {"source:\n", "vars: {python: x}\nsource:\n", `"python" is the name of an axis`},
		"unknown name in a var":      {"source:\n", "vars: {stack: \"{{rcom}}\"}\nsource:\n", `unknown name "rcom"`},
		"condition on no axis":       {`{python: ">=3.10"}`, `{pyton: ">=3.10"}`, `13:20: unknown axis "pyton" | did you mean "python"? known: version, python`},
		"invalid condition":          {`">=3.10"`, `">=three"`, `13:21: ">=three" is not a constraint`},
		"variant of no axis":         {`{version: "<2.10"}`, `{rocm: "<2.10"}`, `25:18: unknown axis "rocm" | known: version, python`},
		"variant of no value":        {`{version: "<2.10"}`, `{version: "2.8"}`, `25:21: the axis version has no value 2.8: no cell meets this condition | its values are 2.10, 2.9`},
		"variant for everything":     {`{version: "<2.10"}`, `{}`, `25:11: a condition must name at least one axis`},
		"unknown launcher":           {"launcher: mpi", "launcher: slurm", `23:20: expect.launcher: "slurm" is not mpi or mpich or gloo`},
		"launcher of a variant":      {`env: {B: "2"}`, `expect: {launcher: slurm}`, `26:24: expect.launcher: "slurm" is not mpi or mpich or gloo`},
		"pattern without an end":     {"launcher: mpi", `extensions: ["a[*.so"]`, `23:23: expect.extensions: "a[*.so" is no valid pattern | * is any name`},
		"axis in the script":         {`{{this is for the shell}}`, "{{ version }}", `21:8: build: the script gets no value for {{ version }} | write VERSION: "{{ version }}" in env, and $VERSION in the script`},
		"pattern of a package":       {"launcher: mpi", `packages: ["ujson*.so"]`, `23:21: expect.packages: "ujson*.so" is no name of a package | packages takes no patterns`},
		"unknown extension of a CPU": {"launcher: mpi", "cpu-isa: {allowed: [avx3]}", `23:30: expect.cpu-isa.allowed[0]: "avx3" is no level or extension of x86-64 | did you mean "avx"? known: x86-64, x86-64-v2,`},
		"a pattern of a gate":        {"launcher: mpi", `elf-needed: {needed: [a, "b[*.so"]}`, `23:35: expect.elf-needed.needed[1]: "b[*.so" is no valid pattern | * is any name`},
		"a choice of a gate":         {"launcher: mpi", "rdma: maybe", `23:16: expect.rdma: "maybe" is not linked or dlopened or absent`},
		"a gate without a promise":   {"launcher: mpi", "elf-needed: {}", `23:22: expect.elf-needed: the settings of elf-needed: it promises nothing`},
		"unknown key of a gate":      {"launcher: mpi", "elf-needed: {neded: [a]}", `23:23: unknown key "neded" | did you mean "needed"? known: forbidden, needed`},
		"repeated key of a gate":     {"launcher: mpi", "elf-needed: {needed: [a], needed: [b]}", `23:36: key "needed" occurs twice, first in line 23`},
		"a gate without settings":    {"launcher: mpi", "elf-symbols: {}", `23:10: unknown key "elf-symbols"`},
		"a setting of another type":  {"launcher: mpi", "elf-needed: [a]", `23:22: elf-needed must be keys with values, not a list`},
		"glibc in words":             {"launcher: mpi", "glibc: two", `23:17: expect.glibc: "two" is no version of glibc | write a version such as "2.28"`},
		"requirement of a variant":   {`env: {B: "2"}`, `requires: {run: ["numpy>>1"]}`, `26:22: requires.run: "numpy>>1" is no requirement of a Python package | write a requirement such as "numpy>=1.26,<2"`},
		"unknown name in the id":     {"tool-{{version}}", "tool-{{vresion}}", `5:5: unknown name "vresion" in "tool-{{vresion}}-{{ cp }}" | did you mean "version"? known: cp, python, version`},
		"unknown name in a source":   {`version: "{{version}}"`, `version: "{{gcc}}"`, `19:12: unknown name "gcc" in "{{gcc}}"`},
		"tag of no Python":           {"{name: python,", "{name: pie,", `5:5: unknown name "cp"`},
		"unknown name in a project":  {"project: tool", `project: "{{x}}"`, `18:12: unknown name "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			must.Hold(t, text != good, "nothing was changed")
			r, err := recipe.Parse("recipes/tool.yaml", []byte(text), gate.Promises())
			all := messages(err)
			if r != nil || !slices.ContainsFunc(all, func(s string) bool {
				return strings.HasPrefix(s, "recipes/tool.yaml:") && strings.Contains(s, c.want)
			}) {
				t.Errorf("got %v, %q", r, all)
			}
			check.That(t, diag.CodeOf(err) == diag.Usage && !strings.Contains(err.Error(), "recipe."),
				"class %v: %v", diag.CodeOf(err), err)
		})
	}
}

func TestParseTellsAllFaultsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"of meaning": {
			"name: fool\naxes: []\nvariants:\n  - {when: {b: 'x', a: 'x y', c: 'z'}}\n",
			[]string{
				"recipes/tool.yaml:2:7: axes is empty: write at least one",
				"recipes/tool.yaml:1:1: build is missing", "recipes/tool.yaml:1:1: homepage is missing", "recipes/tool.yaml:1:1: id is missing",
				"recipes/tool.yaml:1:1: source is missing", "recipes/tool.yaml:1:1: summary is missing",
				`recipes/tool.yaml:1:7: the recipe has the name "fool", and its file "tool"`,
				`recipes/tool.yaml:1:1: from is missing: write the origin of the source as kind sdist, git, archive or wheel`, "recipes/tool.yaml:1:1: source.released is missing: the build uses the date of a release as its clock",
				`recipes/tool.yaml:4:24: unknown axis "a"`, `recipes/tool.yaml:4:24: "x y" is not a constraint: "x y" is not a version`,
				`recipes/tool.yaml:4:16: unknown axis "b"`, `recipes/tool.yaml:4:34: unknown axis "c"`,
			},
		},
	} {
		for range 10 { // the order must be the same each time
			_, err := recipe.Parse("recipes/tool.yaml", []byte(c.text), gate.Promises())
			var got []string
			for _, e := range diag.All(err) {
				got = append(got, e.Error())
			}
			diff := cmp.Diff(c.want, got)
			must.Hold(t, diff == "", "%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLoad(t *testing.T) {
	other := strings.Replace(good, "name: tool", "name: other", 1)
	all, err := recipe.Load(fstest.MapFS{
		"tool.yaml": {Data: []byte(good)}, "other.yaml": {Data: []byte(other)},
		"tool.lock.json": {Data: []byte("{}")}, "schema.json": {}, "below/third.yaml": {Data: []byte("no: recipe")},
	}, "recipes", nil)
	must.Hold(t, err == nil && len(all) == 2 && all[0].Name == "other" && all[1].Name == "tool", "got %v, %v", all, err)
	r, err := recipe.Find(all, "tool")
	check.That(t, err == nil && r == all[1], "found %v, %v", r, err)
	_, err = recipe.Find(all, "tol")
	if got := messages(err); diag.CodeOf(err) != diag.Usage || len(got) != 1 || got[0] != `unknown recipe "tol" | did you mean "tool"? known: other, tool` {
		t.Errorf("got %q", got)
	}
}

// builder gate prints 2.2.5, the first glibc of x86-64, as the one that suffices.
func TestVersionsOfGlibc(t *testing.T) {
	for _, version := range []string{"2.28", "2.2.5"} {
		text := strings.Replace(good, "launcher: mpi", `glibc: "`+version+`"`, 1)
		_, err := recipe.Parse("recipes/tool.yaml", []byte(text), gate.Promises())
		check.That(t, err == nil && text != good, "%s: %v", version, err)
	}
}

// One bad file hides neither the errors of the next file nor the valid recipes.
func TestLoadTellsTheFaultsOfAllFiles(t *testing.T) {
	all, err := recipe.Load(fstest.MapFS{
		"a.yaml": {Data: []byte("nme: a\n")}, "b.yaml": {}, "tool.yaml": {Data: []byte(good)}, "z.yaml": {Data: []byte(good)},
	}, "site/recipes", nil)
	want := []string{
		`site/recipes/a.yaml:1:1: unknown key "nme" | did you mean "name"? known: advisories, axes, build, compatible, cpython, env, expect, from, homepage, id, image, inputs, license, name, nodes, profile, requires, runtime, selectors, source, summary, tests-from, variants, vars, vendored`,
		"site/recipes/b.yaml: the file is empty | write its keys, or remove the file",
		`site/recipes/z.yaml:2:7: the recipe has the name "tool", and its file "z"`,
	}
	check.Same(t, "values", want, messages(err))
	check.That(t, len(all) == 1 && all[0].Name == "tool", "got %v", all)
}

func TestLoadOfWhatCannotBeRead(t *testing.T) {
	_, err := recipe.Load(fstest.MapFS{"a.yaml": {Mode: fs.ModeDir}}, "recipes", nil)
	check.That(t, err != nil, "a directory was read")
	all, err := recipe.Load(fstest.MapFS{}, "recipes", nil)
	check.That(t, err == nil && len(all) == 0, "of nothing: %v, %v", all, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("name: tool\naxes: []\nvariants:\n  - {when: {b: 'x', a: 'x y'}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := recipe.Parse("recipes/tool.yaml", data, gate.Promises())
		check.That(t, (r == nil) == (err != nil), "got %v, %v", r, err)
		if e, ok := errors.AsType[*diag.Error](err); err != nil && (!ok || e.Code != diag.Usage || e.Pos.File == "") {
			t.Errorf("got %#v", err)
		}
	})
}

// --accept all means every recipe.
func TestNoRecipeIsCalledAll(t *testing.T) {
	for _, name := range []string{"all", "x,all", "x all"} {
		text := strings.Replace(good, "name: tool", "name: "+name, 1)
		_, err := recipe.Load(fstest.MapFS{name + ".yaml": {Data: []byte(text)}}, "recipes", nil)
		check.That(t, err != nil && strings.Contains(err.Error(), "is no name of a recipe"), "%s: got %v", name, err)
	}
}

// An invalid variable name would run as a command in the script of a build step.
func TestNamesOfVariablesAreNames(t *testing.T) {
	text := must.Get(os.ReadFile("../../../recipes/horovod.yaml"))(t)
	for name, line := range map[string]string{
		"a;touch x": `"a;touch x": v`, "1a": "1a: v", "a.b": "a.b: v", "$(x)": `"$(x)": v`, "-S": `"-S": v`, "": `"": v`,
	} {
		bad := string(text)
		at := strings.Index(bad, "\nenv:\n")
		must.Hold(t, at >= 0, "the recipe has no env")
		bad = bad[:at] + "\nenv:\n  " + line + "\n" + bad[at+len("\nenv:\n"):]
		_, err := recipe.Parse("recipes/horovod.yaml", []byte(bad), gate.Promises())
		errs := diag.All(err)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "is not the name of a variable") || errs[0].Pos.Line != strings.Count(bad[:at], "\n")+3 || errs[0].Pos.Column == 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
}
