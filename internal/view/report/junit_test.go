package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

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
