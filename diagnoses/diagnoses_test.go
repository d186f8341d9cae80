package diagnoses_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/diagnoses"
	"builder/internal/gates/gate"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/patches"
	"builder/recipes"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

func TestSchema(t *testing.T) {
	golden.CheckFile(t, "schema.json", recipetest.Schema(&diagnose.File{}))
}

func load(t *testing.T) []diagnose.Diagnosis {
	t.Helper()
	all, err := diagnose.Load(diagnoses.FS, "diagnoses")
	must.Hold(t, err == nil && len(all) != 0, "%d diagnoses, %v", len(all), err)
	return all
}

var numbered = regexp.MustCompile(`^[0-9]{2}-`)

func TestEveryFileIsEmbeddedAndRead(t *testing.T) {
	for name, text := range golden.CheckEmbedded(t, diagnoses.FS, "testdata") {
		switch {
		case name == "schema.json":
		case !strings.HasSuffix(name, ".yaml"):
			t.Errorf("%s is neither a topic nor the schema", name)
		case !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=schema.json\n")):
			t.Errorf("%s has no line that names its schema for editors", name)
		case !numbered.MatchString(name):
			t.Errorf("%s has no number of two digits: topics come in the order of their files", name)
		}
	}
}

// found returns the names of the catalogue's findings in a text, without the symptoms
// of a cause already found.
func found(t *testing.T, e *diagnose.Examiner, text string) []string {
	t.Helper()
	r := must.Get(e.Log(t.Context(), "log", strings.NewReader(text)))(t)
	names := []string{}
	for i, f := range r.Findings {
		if i == 0 || !f.Symptom {
			names = append(names, f.Name)
		}
	}
	return names
}

// The example of one failure shows no other, or users would have to choose between two
// remedies.
func TestExamplesShowOneFailure(t *testing.T) {
	all := load(t)
	e := diagnose.NewExaminer(all)
	for _, d := range all {
		for _, text := range d.Examples.Match {
			got := found(t, e, text)
			check.That(t, slices.Equal(got, []string{d.Name}), "%s: found %q in %q", d.Name, got, text)
		}
	}
}

// In real logs the lines have times, ranks and colours around them.
func TestExamplesInTheWild(t *testing.T) {
	all := load(t)
	e := diagnose.NewExaminer(all)
	for _, d := range all {
		for _, text := range d.Examples.Match {
			var wild strings.Builder
			for line := range strings.Lines(text) {
				fmt.Fprintf(&wild, "2026-01-02T03:04:05.6Z [1,0]<stderr>:\x1b[31m%s\x1b[0m\r\n", strings.TrimSuffix(line, "\n"))
			}
			got := found(t, e, wild.String())
			check.That(t, slices.Contains(got, d.Name), "%s: found %q in %q", d.Name, got, wild.String())
		}
	}
}

// Every named fix exists.
func TestMenders(t *testing.T) {
	rs := must.Get(recipe.Load(recipes.FS, "recipes", gate.Promises()))(t)
	known := map[string]bool{}
	for _, r := range rs {
		for _, axis := range r.AxisNames() {
			known["the axis "+r.Name+"/"+axis] = true
		}
		ps := must.Get(patch.Load(patches.FS, "patches", r.Name))(t)
		for _, p := range ps {
			known["the patch "+r.Name+"/"+p.Name] = true
		}
	}
	for _, d := range load(t) {
		if m := d.MendedBy; m != nil && m.Option == "" && !known[m.String()] {
			t.Errorf("%s is mended by %s, which does not exist", d.Name, m)
		}
	}
}

// Every source in docs/ exists.
func TestSources(t *testing.T) {
	for _, d := range load(t) {
		if strings.HasPrefix(d.Source, "docs/") {
			_, err := os.Stat(filepath.Join("..", d.Source))
			check.That(t, err == nil, "%s: %v", d.Name, err)
		}
	}
}

// Logs of successful runs show no failure.
func TestGoodLogs(t *testing.T) {
	e := diagnose.NewExaminer(load(t))
	logs, err := filepath.Glob("testdata/good-*.log")
	must.Hold(t, err == nil && len(logs) != 0, "%d logs, %v", len(logs), err)
	for _, log := range logs {
		r, err := e.File(context.Background(), log)
		check.That(t, err == nil && r.Lines >= 20, "%s: %d lines, %v", log, r.Lines, err)
		for _, f := range r.Findings {
			check.That(t, f.Severity == diagnose.Note, "%s:%d: %s: %s: %s", log, f.Line, f.Severity, f.Name, f.Text)
		}
	}
}

// Each file of testdata/reports is the log of a public report, below the thread and the
// name of the failure that [diagnose.Examiner] must put first.
func TestReports(t *testing.T) {
	e := diagnose.NewExaminer(load(t))
	files, err := filepath.Glob("testdata/reports/*.txt")
	must.Hold(t, err == nil && len(files) != 0, "%d reports, %v", len(files), err)
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		head, log, _ := strings.Cut(string(data), "\n\n")
		thread, answer, ok := strings.Cut(strings.TrimPrefix(head, "thread: "), "\nanswer: ")
		check.That(t, ok && strings.HasPrefix(thread, "https://"), "%s does not begin with its thread and its answer: %q", file, head)
		got := found(t, e, log)
		check.That(t, len(got) != 0 && got[0] == answer, "%s: found %q, want %s first", file, got, answer)
	}
}

const made = "<!-- The tables below are generated from diagnoses/*.yaml: go test ./diagnoses -update -->\n"

// The page lists the failures as the tool reports them. The part above the mark is
// written by hand.
func TestTroubleshooting(t *testing.T) {
	path := filepath.Join("..", "docs", "troubleshooting.md")
	page := must.Get(os.ReadFile(path))(t)
	byHand, _, ok := strings.Cut(string(page), made)
	must.Hold(t, ok, "%s has lost its mark %q", path, made)
	var b strings.Builder
	topic := ""
	for _, d := range load(t) {
		if d.Topic != topic {
			topic = d.Topic
			fmt.Fprintf(&b, "\n### %s\n\n| failure | seen | why | what to do |\n| --- | --- | --- | --- |\n", topic)
		}
		fmt.Fprintf(&b, "| %s `%s` | %s | %s | %s ([source](%s)) |\n",
			d.Severity, d.Name, seen(d.Examples.Match[0]), cell(d.Cause), cell(d.Remedy), strings.TrimPrefix(d.Source, "docs/"))
	}
	golden.CheckFile(t, path, []byte(byHand+made+b.String()))
}

// seen shortens the lines of an example and formats them as code.
func seen(example string) string {
	const width = 90
	var lines []string
	for line := range strings.Lines(example) {
		text := []rune(strings.TrimSpace(line))
		if len(text) > width {
			text = append(text[:width], '…')
		}
		lines = append(lines, "`` "+strings.ReplaceAll(string(text), "|", `\|`)+" ``")
	}
	return strings.Join(lines, " and ")
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text)
}
