package repo_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

var update = flag.Bool("update", false, "write the facts of docs/dependencies.md; asks the module proxy for dates")

const dependencies = "docs/dependencies.md"

// tableBelow returns the cells of the table below a heading of a page, without
// backticks.
func tableBelow(t *testing.T, page, heading string) [][]string {
	t.Helper()
	_, below, _ := strings.Cut(page, "\n## "+heading+"\n")
	section, _, _ := strings.Cut(below, "\n## ")
	var all [][]string
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|"); len(cells) > 3 {
			for i, c := range cells {
				cells[i] = strings.TrimSpace(c)
			}
			all = append(all, cells[1:len(cells)-1])
		}
	}
	must.Hold(t, len(all) >= 4, "the table below %q has only %d lines", heading, len(all))
	return all[2:] // without the header and its separator
}

// A module is one of the build list.
type module struct {
	Path, Version, Time, Dir string
	Indirect                 bool
}

// modules runs go list and returns the modules that it prints, without this one.
func modules(t *testing.T, args ...string) []module {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	must.Hold(t, err == nil, "go list %q: %v", args, err)
	seen := map[string]module{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var m struct {
			module
			Module *module
		}
		must.Succeed(t, dec.Decode(&m))
		if m.Module != nil {
			m.module = *m.Module
		}
		if m.Version != "" {
			seen[m.Path] = m.module
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b module) int { return strings.Compare(a.Path, b.Path) })
}

// licences maps a sentence of a licence to its name.
var licences = []struct{ sentence, name string }{
	{"Apache License", "Apache-2.0"},
	{"Redistribution and use in source and binary forms", "BSD"},
	{"Permission is hereby granted, free of charge", "MIT"},
	{"Mozilla Public License", "MPL-2.0"},
	{"Permission to use, copy, modify, and/or distribute", "ISC"},
}

// licence returns the licences in the files of a module.
func (m module) licence() string {
	var text strings.Builder
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*"} {
		files, _ := filepath.Glob(filepath.Join(m.Dir, pattern)) // the patterns are well formed
		for _, file := range files {
			data, _ := os.ReadFile(file) // a folder of licences has none
			text.Write(data)
		}
	}
	words := strings.Join(strings.Fields(text.String()), " ")
	var names []string
	for _, l := range licences {
		switch {
		case !strings.Contains(words, l.sentence):
		case l.name != "BSD":
			names = append(names, l.name)
		case strings.Contains(words, "Neither the name") || strings.Contains(words, "to endorse or promote"):
			names = append(names, "BSD-3-Clause")
		default:
			names = append(names, "BSD-2-Clause")
		}
	}
	return strings.Join(names, ", ")
}

// direct lists the modules that go.mod requires itself.
func direct(t *testing.T) []module {
	return slices.DeleteFunc(modules(t, "-m", "-json=Path,Version,Dir,Indirect", "all"), func(m module) bool { return m.Indirect })
}

// facts returns the table of modules with the reasons and dates of the present one. With
// -update it asks for dates.
func facts(t *testing.T, page string) string {
	t.Helper()
	reasons, dates := map[string]string{}, map[string]string{}
	for _, r := range tableBelow(t, page, "Modules") {
		reasons[r[0]], dates[r[0]+r[1]] = r[len(r)-1], r[2]
	}
	// The backticks of a reason are those of the page.
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 5 {
			if name := strings.Trim(cells[1], " `"); reasons[name] != "" {
				reasons[name] = strings.TrimSpace(cells[len(cells)-2])
			}
		}
	}
	var b strings.Builder
	b.WriteString("| module | version | date | licence | why |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range direct(t) {
		date := dates[m.Path+m.Version]
		if *update {
			if known := modules(t, "-m", "-json=Path,Version,Time", m.Path+"@"+m.Version); len(known) == 1 && known[0].Time != "" {
				date, _, _ = strings.Cut(known[0].Time, "T")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Path, m.Version, date, m.licence(), reasons[m.Path])
	}
	return b.String()
}

// linked returns a table with the number of linked modules of each licence.
func linked(t *testing.T) string {
	t.Helper()
	count := map[string]int{}
	all := modules(t, "-deps", "-json=Module", "./cmd/builder")
	for _, m := range all {
		count[m.licence()]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| licence | modules of %d |\n| --- | --- |\n", len(all))
	for _, name := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "| %s | %d |\n", name, count[name])
	}
	return b.String()
}

// between replaces the text between two comments of a page.
func between(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+": written by go test ./test/repo -run Dependency -update -->\n", "<!-- end of "+name+" -->"
	before, rest, ok1 := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	must.Hold(t, ok1 && ok2, "%s has no part %q", dependencies, name)
	return before + begin + "\n" + text + "\n" + end + after
}

// The page lists exactly the modules required by go.mod, with their versions, licences
// and reasons.
func TestEveryDependencyIsExplained(t *testing.T) {
	atRoot(t)
	data := must.Get(os.ReadFile(dependencies))(t)
	want := between(t, string(data), "modules", facts(t, string(data)))
	want = between(t, want, "licences", linked(t))
	if *update {
		must.Succeed(t, os.WriteFile(dependencies, []byte(want), 0o644))
	}
	check.That(t, *update || want == string(data), "%s does not agree with go.mod: run go test ./test/repo -run Dependency -update", dependencies)
	for _, r := range tableBelow(t, want, "Modules") {
		check.That(t, !slices.Contains(r, ""), "%s leaves something out about %s", dependencies, r[0])
	}
}

// The version of each other pin occurs in the file named on the page.
func TestEveryPinIsWhereThePageSays(t *testing.T) {
	atRoot(t)
	page := must.Get(os.ReadFile(dependencies))(t)
	table := tableBelow(t, string(page), "What is pinned elsewhere")
	for _, r := range table {
		what, version, file := r[0], r[1], r[2]
		text, err := os.ReadFile(file)
		check.That(t, err == nil && strings.Contains(string(text), version),
			"%s: %s %s is not pinned in %s: %v", dependencies, what, version, file, err)
	}
	engine := must.Get(os.ReadFile("internal/build/native/engine/go.mod"))(t)
	for line := range strings.Lines(string(engine)) {
		if of, direct := strings.CutPrefix(line, "require github"); direct {
			name, _, _ := strings.Cut("github"+of, " ")
			check.That(t, slices.ContainsFunc(table, func(r []string) bool { return r[0] == name }), "%s has nothing about %s of the engine", dependencies, name)
		}
	}
}
