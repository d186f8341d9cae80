package recipe_test

import (
	"strings"
	"testing"

	"builder/internal/gates/gate"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// withTests returns the good recipe with tests of its own and of a variant that holds
// for the cell of TestTestsAddUp.
func withTests(own, more string) string {
	return strings.Replace(good, "expect: {launcher: mpi}\n", "expect: {tests: "+own+"}\n", 1) +
		"  - {when: {python: \"3.12\"}, expect: {tests: " + more + "}}\n"
}

func TestTestsAddUp(t *testing.T) {
	const own = `{launcher: horovodrun, ranks: 2, files: [{file: test/a.py, seconds: 60, quick: {select: x, seconds: 9}}]}`
	settings := func(more string) (recipe.Settings, error) {
		r := must.Get(recipe.Parse("site/recipes/tool.yaml", []byte(withTests(own, more)), gate.Promises()))(t)
		return r.For(map[string]string{"python": "3.12", "version": "2.10"})
	}
	s, err := settings(`{files: [{file: test/a.py, known: [{cases: [test_x], because: b, issue: "https://example.org/1"}]}, {file: test/b.py, seconds: 5}, {file: test/a.py, select: alone, seconds: 2}]}`)
	must.Succeed(t, err)
	want := recipe.Tests{Launcher: "horovodrun", Ranks: 2, Files: []recipe.TestFile{
		{
			File: "test/a.py", Seconds: 60, Quick: &recipe.Quick{Select: "x", Seconds: 9},
			Known: []recipe.Known{{Cases: []string{"test_x"}, Because: "b", Issue: "https://example.org/1"}},
		},
		{File: "test/b.py", Seconds: 5},
		{File: "test/a.py", Select: "alone", Seconds: 2},
	}}
	got := s.Expect.Tests
	check.Same(t, "values", want, got)
	check.That(t, got.QuickSeconds() == 9 && got.FullSeconds() == 67, "quick %d, full %d", got.QuickSeconds(), got.FullSeconds())
	for more, clash := range map[string]string{
		`{launcher: horovodrun, ranks: 2}`:                             "",
		`{ranks: 3}`:                                                   "expect.tests.ranks",
		`{files: [{file: test/a.py, seconds: 61}]}`:                    "expect.tests.files[test/a.py].seconds",
		`{files: [{file: test/a.py, quick: {select: y, seconds: 9}}]}`: "expect.tests.files[test/a.py].quick",
	} {
		if _, err := settings(more); (err == nil) != (clash == "") || err != nil && !strings.Contains(err.Error(), "two settings for "+clash) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

func TestTestsOfACellLack(t *testing.T) {
	from := recipe.Origin{Kind: recipe.Git, Repository: "https://example.org/x", Tag: "v1"}
	files := []recipe.TestFile{{File: "test/a.py", Seconds: 1}}
	for name, c := range map[string]struct {
		tests recipe.Tests
		from  recipe.Origin
		says  string
	}{
		"complete":                 {recipe.Tests{Launcher: "horovodrun", Ranks: 2, Files: files}, from, ""},
		"complete, one process":    {recipe.Tests{Files: files}, from, ""},
		"no tests":                 {recipe.Tests{}, recipe.Origin{}, ""},
		"no origin":                {recipe.Tests{Files: files}, recipe.Origin{}, "needs tests-from of kind git"},
		"an origin other than git": {recipe.Tests{Files: files}, recipe.Origin{Kind: recipe.Sdist}, "needs tests-from of kind git"},
		"no tag":                   {recipe.Tests{Files: files}, recipe.Origin{Kind: recipe.Git, Repository: "https://example.org/x"}, "needs from.tag"},
		"no launcher":              {recipe.Tests{Ranks: 2, Files: files}, from, "2 ranks need a launcher"},
		"no ranks":                 {recipe.Tests{Launcher: "horovodrun", Files: files}, from, "launcher horovodrun needs ranks"},
		"no seconds":               {recipe.Tests{Files: []recipe.TestFile{{File: "test/a.py"}}}, from, "test/a.py needs seconds"},
	} {
		err := c.tests.Fault(c.from)
		check.That(t, (err == nil) == (c.says == "") && (err == nil || strings.Contains(err.Error(), c.says)), "%s: %v", name, err)
	}
}

func TestTestsAsWritten(t *testing.T) {
	for own, says := range map[string]string{
		`{files: [{file: test/a.py, seconds: 5}]}`:                       "",
		`{launcher: horovodrun, ranks: 2}`:                               "",
		`{launcher: ssh}`:                                                `tests.launcher: "ssh" is not horovodrun`,
		`{ranks: 100}`:                                                   "100 ranks: write 1 to 64",
		`{ranks: -1}`:                                                    "-1 ranks: write 1 to 64",
		`{files: [{file: ../a.py}]}`:                                     `"../a.py" is not the path of a test`,
		`{files: [{file: /test/a.py}]}`:                                  `"/test/a.py" is not the path of a test`,
		`{files: [{file: test/a}]}`:                                      `"test/a" is not the path of a test`,
		`{files: [{seconds: 5}]}`:                                        `"" is not the path of a test`,
		`{files: [{file: a.py}, {file: a.py}]}`:                          `"a.py" occurs twice`,
		`{files: [{file: a.py, select: x}, {file: a.py, select: x}]}`:    `"a.py x" occurs twice`,
		`{files: [{file: a.py}, {file: a.py, select: x}]}`:               "",
		`{files: [{file: a.py, seconds: -5}]}`:                           "a.py: seconds must be a measured time",
		`{files: [{file: a.py, quick: {select: x}}]}`:                    "quick.seconds is missing",
		`{files: [{file: a.py, controller: slurm}]}`:                     `files.controller: "slurm" is not mpi or mpich or gloo`,
		`{files: [{file: a.py, known: [{cases: [x], because: b}]}]}`:     "known.issue is missing",
		`{files: [{file: a.py, known: [{because: b, issue: "https"}]}]}`: "known.cases is missing",
	} {
		_, err := recipe.Parse("site/recipes/tool.yaml", []byte(strings.Replace(good, "expect: {launcher: mpi}\n", "expect: {tests: "+own+"}\n", 1)), gate.Promises())
		check.That(t, (err == nil) == (says == "") && (err == nil || strings.Contains(err.Error(), says)), "%s: %v", own, err)
	}
}
