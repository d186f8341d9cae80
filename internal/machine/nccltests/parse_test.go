package nccltests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("testdata", name)))(t))
}

// The outputs are of releases from 2.13 to 2.19 and of rccl-tests. The golden files hold
// the reports.
func TestParseEveryLayout(t *testing.T) {
	files, err := filepath.Glob("testdata/*-*.txt")
	must.Hold(t, err == nil && len(files) >= 8, "%d fixtures, %v", len(files), err)
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			report := must.Get(Parse(fixture(t, name)))(t)
			text := must.Get(json.MarshalIndent(report, "", " "))(t)
			golden.Check(t, filepath.Join("golden", name+".json"), append(text, '\n'))
		})
	}
}

func TestParseRefuses(t *testing.T) {
	whole := fixture(t, "v2.17.6-all_reduce.txt")
	lines := strings.SplitAfter(whole, "\n")
	swap := func(old, new string) string {
		must.Hold(t, strings.Contains(whole, old), "%q is not in the fixture", old)
		return strings.Replace(whole, old, new, 1)
	}
	row := func(i int) string { return lines[11+i] }
	for name, c := range map[string]struct{ text, says string }{
		"nothing":         {"", "no table"},
		"only noise":      {"hello\nworld\n", "no table"},
		"header only":     {strings.Join(lines[:11], ""), "no row"},
		"no row":          {swap(row(0)+row(1)+row(2), ""), "no row"},
		"cut in a row":    {strings.Join(lines[:13], "") + row(2)[:60], "columns"},
		"cut in a number": {strings.Join(lines[:13], "") + strings.TrimRight(row(2)[:len(row(2))-4], " "), "12 of 13 columns"},
		"cut after a row": {strings.Join(lines[:13], ""), "footer is missing"},
		"no footer":       {strings.Join(lines[:14], ""), "footer is missing"},
		"half a footer":   {strings.Join(lines[:15], ""), "footer is missing"},
		"not concluded":   {swap("# Collective test concluded: all_reduce_perf\n", ""), "footer is missing"},
		"row at the end":  {whole + row(0), "after the footer"},
		"NaN":             {swap("287.50", "   nan"), "not a measurement"},
		"minus NaN":       {swap("287.50", "  -nan"), "invalid syntax"},
		"infinite":        {swap("287.50", "   inf"), "not a measurement"},
		"negative":        {swap("287.50", " -1.00"), "not a measurement"},
		"no time":         {swap("933.69", "  0.00"), "the time is zero"},
		"half an element": {swap("      0\n", "    0.5\n"), "not a number of elements"},
		"average is NaN":  {swap("250.339", "nan"), "not a measurement"},
		"NCCL failed":     {swap(row(1), "node1: Test NCCL failure common.cu:1 'unhandled system error / '\n"), "unhandled system error"},
		"timeout":         {swap(row(1), "node1: Test timeout (10s) common.cu:1\n .. node1 pid 1: Test failure common.cu:1\n"), "Test timeout (10s)"},
		"a line in a row": {swap(row(1), row(1)[:40]+"node1:1:2 [0] NCCL INFO x\n"+row(1)[40:]), "columns"},
		"contradiction":   {swap("0 OK", "3 OK"), "contradicts itself"},
		"unknown column":  {swap("root     time", "root right time"), "has other columns"},
		"header cut":      {swap("root     time   algbw   busbw  #wrong     time", "root     time   algbw   busbw  #wrong     "), "has other columns"},
		"before 2.13":     {strings.ReplaceAll(whole, "#wrong", " error"), "than releases since 2.13"},
	} {
		report, err := Parse(c.text)
		check.Fails(t, err, c.says, name)
		check.That(t, len(report.Rows) == 0, "%s: an error and a report", name)
	}
}

// Other lines may appear between the lines of a table.
func TestParseTolerates(t *testing.T) {
	whole := fixture(t, "v2.17.6-all_reduce.txt")
	want := must.Get(Parse(whole))(t)
	lines := strings.SplitAfter(whole, "\n")
	for name, text := range map[string]string{
		"CRLF":          strings.ReplaceAll(whole, "\n", "\r\n"),
		"lines between": strings.Join(lines[:12], "") + "node1:1:2 [0] NCCL INFO x\n10-0-0-1:1:2 [0] misc/socket.cc:1 NCCL WARN y\n# a comment\n\n" + strings.Join(lines[12:], ""),
		"lines before":  "7 warnings\n16777216 of something\n" + whole,
		"no last break": strings.TrimRight(whole, "\n"),
	} {
		got, err := Parse(text)
		check.That(t, err == nil && len(got.Rows) == len(want.Rows) && got.Rows[2] == want.Rows[2],
			"%s: got %d rows, %v", name, len(got.Rows), err)
	}
}

func FuzzParse(f *testing.F) {
	files := must.Get(filepath.Glob("testdata/*-*.txt"))(f)
	for _, file := range files {
		f.Add(fixture(f, filepath.Base(file)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		report, err := Parse(text)
		if err != nil {
			return
		}
		must.Hold(t, len(report.Rows) != 0, "a report without a row")
		for _, row := range report.Rows {
			for _, timing := range []Timing{row.OutOfPlace, row.InPlace} {
				must.Hold(t, timing.BusBW >= 0 && timing.Wrong >= 0, "%+v is not a measurement", timing)
			}
		}
	})
}

func TestVersionOf(t *testing.T) {
	for number, want := range map[int]string{22907: "2.29.7", 21805: "2.18.5", 2804: "2.8.4", 2708: "2.7.8", 0: "", -1: ""} {
		check.Same(t, fmt.Sprint(number), want, VersionOf(number))
	}
}
