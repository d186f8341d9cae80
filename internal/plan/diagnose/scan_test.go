package diagnose_test

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/plan/diagnose"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// entry returns one diagnosis in YAML. rules are its signs and other expressions. shown
// is a matching text.
func entry(name, rules, shown string) string {
	return fmt.Sprintf(`
  - name: %s
    cause: it is so
    remedy: make it otherwise
    source: https://example.com/1
    examples: {match: [%q], miss: [nothing]}
    %s
`, name, shown, rules)
}

func examiner(t *testing.T, entries ...string) *diagnose.Examiner {
	t.Helper()
	all := must.Get(read("topic: Tests\ndiagnoses:" + strings.Join(entries, "")))(t)
	return diagnose.NewExaminer(all)
}

// show returns the findings of a log as name@line x count.
func show(t *testing.T, e *diagnose.Examiner, log string) string {
	t.Helper()
	r := must.Get(e.Log(t.Context(), "log", strings.NewReader(log)))(t)
	var all []string
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s@%d x%d", f.Name, f.Line, f.Count))
	}
	return strings.Join(all, ", ")
}

const logError = "severity: error\n    "

func TestRules(t *testing.T) {
	e := examiner(t,
		entry("any", logError+"signs: ['alpha\\d', 'beta\\d']\n    except: ['harmless']", "alpha1"),
		entry("all", logError+"all-of: ['gamma\\d', 'delta\\d']", "gamma1 delta1"),
		entry("none", logError+"signs: ['epsilon']\n    not: ['recovered']", "epsilon"),
		entry("both", logError+"signs: ['zeta1', 'zeta2']\n    all-of: ['theta']", "zeta1 theta"),
	)
	for log, want := range map[string]string{
		"":                               "",
		"alpha":                          "",
		"x\nalpha1\nbeta2\nalpha3\n":     "any@2 x3",
		"alpha1 beta2 alpha3\n":          "any@1 x1",
		"alpha1 harmless\nbeta2\n":       "any@2 x1",
		"gamma1\n":                       "",
		"delta1\nx\ngamma1\ngamma2\n":    "all@3 x2",
		"gamma1 delta1\n":                "all@1 x1",
		"epsilon\n":                      "none@1 x1",
		"epsilon\nx\nrecovered\n":        "",
		"recovered\nepsilon\n":           "",
		"zeta2\n":                        "",
		"theta\nzeta2\nzeta1\n":          "both@2 x2",
		"50%\ralpha1\rdone\nbeta1\n":     "any@1 x2",
		"\x1b[31mal\x1b[0mpha1\x1b[0m\n": "any@1 x1",
	} {
		check.Same(t, log, want, show(t, e, log))
	}
}

// Errors come before warnings before notes, causes before symptoms, earlier lines
// before later ones.
func TestRanking(t *testing.T) {
	rule := func(severity, sign string) string {
		return "severity: " + severity + "\n    signs: [" + sign + "]"
	}
	e := examiner(t,
		entry("hint", rule("note", "word1"), "word1"),
		entry("doubt", rule("warning", "word2"), "word2"),
		entry("later", rule("error", "word5"), "word5"),
		entry("echo", rule("error", "word3")+"\n    symptom: true", "word3"),
		entry("first", rule("error", "word4"), "word4"),
	)
	if got, want := show(t, e, "word1\nword2\nword3\nword4\nword5\n"), "first@4 x1, later@5 x1, echo@3 x1, doubt@2 x1, hint@1 x1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTextOfAFindingIsBounded(t *testing.T) {
	e := examiner(t, entry("any", logError+"signs: ['alpha']", "alpha"))
	r, err := e.Log(t.Context(), "log", strings.NewReader("alpha"+strings.Repeat("x", 10_000)))
	check.That(t, err == nil && len(r.Findings) == 1 && len(r.Findings[0].Text) == 500, "got %d findings, %v", len(r.Findings), err)
	r, err = e.Log(t.Context(), "log", strings.NewReader("alpha"+strings.Repeat("é", 10_000))) // a character ends at byte 501
	check.That(t, err == nil && len(r.Findings) == 1 && r.Findings[0].Text == "alpha"+strings.Repeat("é", 247),
		"the text is cut inside a character: %+v, %v", r, err)
}
