package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// Results other than wheels have other commands to install, or none.
func TestCommands(t *testing.T) {
	cell := func(id, name string) Cell {
		return Cell{
			ID: id, Recipe: "tool", Artifacts: []artifact.Artifact{{Name: name, Path: "my out/" + id + "/" + name}},
			Verdicts: []verdict.Verdict{{Gate: "import", Status: verdict.Pass}},
		}
	}
	nowhere := cell("tool-1", "tool.whl")
	nowhere.Artifacts[0].Path = ""
	pinned := cell("tool-1", "the_tool-1.0+cuda13-py3-none-any.whl")
	public := cell("tool-1", "tool-1.0-py3-none-any.whl")
	public.Artifacts[0].SHA256 = "aa"
	public.Artifacts = append(public.Artifacts, artifact.Artifact{Name: "tool-1.requirements.txt", Path: "my out/tool-1/tool-1.requirements.txt"})
	pinned.Artifacts = append(pinned.Artifacts, artifact.Artifact{Name: "tool-1.requirements.txt", Path: "my out/tool-1/tool-1.requirements.txt"})
	unknown := cell("tool-1", "tool.whl")
	unknown.Recipe, unknown.Verdicts = "", nil
	for name, want := range map[string]struct {
		cell  Cell
		lines string
	}{
		"wheel": {cell("tool-1", "tool.whl"), "uv pip install 'my out/tool-1/tool.whl'|pip install 'my out/tool-1/tool.whl'|builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"pinned": {pinned, "uv pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"public version": {public, "uv pip install --require-hashes --find-links 'my out/tool-1' -r 'my out/tool-1/tool-1.requirements.txt'|" +
			"builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"archive":          {cell("tool-1", "tool.tar.gz"), "builder verify 'my out/tool-1'|builder publish 'my out/tool-1' --to DEST"},
		"nowhere":          {nowhere, ""},
		"failed":           {Cell{ID: "tool-1", Recipe: "tool", Axes: map[string]string{"rocm": "5.7", "arch": "a b"}}, "builder run tool --arch 'a b' --rocm 5.7"},
		"failed of a site": {Cell{ID: "tool-1", Recipe: "tool", Recipes: "our site"}, "builder run tool --recipes 'our site'"},
		"failed with --set": {
			Cell{ID: "tool-1", Recipe: "tool", Axes: map[string]string{"version": "1"}, Set: []string{"source.tool=/a b"}},
			"builder run tool --version 1 --set 'source.tool=/a b'",
		},
		"failed in a build step": {
			Cell{ID: "tool-1", Recipe: "tool", Error: &CellError{Code: "build", Shell: "builder debug shell tool-1"}},
			"builder debug shell tool-1|builder run tool",
		},
		"unknown": {unknown, ""},
	} {
		var lines []string
		for _, c := range Commands(want.cell) {
			lines = append(lines, c.Line)
		}
		check.Same(t, name, want.lines, strings.Join(lines, "|"))
	}
}

func TestJUnit(t *testing.T) {
	data, err := JUnit(Run{Cells: []Cell{
		{ID: "a", Steps: []Step{{Seconds: 1.5}}, Verdicts: []verdict.Verdict{
			{Gate: "import", Status: verdict.Pass, Evidence: "imported \x1b[31m<b>\x00"},
			{Gate: "size", Status: verdict.Fail, Evidence: "too large\nby far", Remedy: "make it smaller"},
			{Gate: "transport", Status: verdict.NotMeasured, Evidence: "no GPU"},
			{Gate: "cpu-isa", Status: verdict.Waived, Evidence: "avx2"},
		}},
		{ID: "b", Error: &CellError{Code: "build", Message: "make failed", Hint: "read the log"}},
		{ID: "c"},
	}})
	must.Succeed(t, err)
	var back junitSuites
	err = xml.Unmarshal(data, &back)
	must.Hold(t, err == nil, "%v\n%s", err, data)
	a, b, c := back.Suites[0], back.Suites[1], back.Suites[2]
	check.That(t, a.Tests == 4 && a.Failures == 1 && a.Errors == 1 && a.Skipped == 1 && a.Time == "1.500", "%+v", a)
	if a.Cases[0].Out != "imported <b>" || a.Cases[1].Failure.Message != "too large" || !strings.Contains(a.Cases[1].Failure.Text, "make it smaller") || a.Cases[2].Error.Type != "not-measured" {
		t.Errorf("%+v", a.Cases)
	}
	check.That(t, b.Errors == 1 && b.Cases[0].Name == "build" && strings.HasSuffix(b.Cases[0].Error.Text, "make failed\nread the log") && c.Skipped == 1 && c.Tests == 1, "%+v %+v", b, c)
}
