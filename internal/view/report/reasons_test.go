package report_test

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/view/report"
	"builder/test/kit/check"
)

// refused returns a cell refused by a gate.
func refused(id, gate string, status verdict.Status, evidence string) report.Cell {
	c := passed(id, "1")
	c.Verdicts = append(c.Verdicts, verdict.Verdict{Gate: gate, Status: status, Evidence: evidence, Remedy: "mend it"})
	return c
}

// The headline gives the number of cells that passed or did not, and the first reason.
func TestHeadline(t *testing.T) {
	build := refused("c", "check-build", verdict.Fail, "TensorFlow was not found\nand more")
	gpu := refused("d", "nccl-tests", verdict.NotMeasured, "no GPU")
	none := passed("e", "1")
	none.Verdicts = nil
	stopped := failed("f", "build")
	stopped.Error.Message = "building f: step build: it stopped"
	broken := failed("g", "build")
	broken.Error.Cause = []string{"a.c:1:10: fatal error: nosuch.h: No such file", "1 | #include"}
	for want, cells := range map[string][]report.Cell{
		"1 cell failed: a.c:1:10: fatal error: nosuch.h: No such file": {broken},
		"The run has no cells": nil,
		"2 of 2 cells passed":  {passed("a", "1"), passed("b", "1")},
		"1 of 3 cells failed: check-build: TensorFlow was not found":               {passed("a", "1"), build, passed("b", "1")},
		"1 of 2 cells not measured: nccl-tests: no GPU":                            {passed("a", "1"), gpu},
		"1 cell not measured: gates: No gate checked it.":                          {none},
		"2 of 4 cells failed, 1 not measured, 1 not built: step build: it stopped": {{ID: "x"}, gpu, build, stopped},
		"1 of 2 cells not built":                                                   {passed("a", "1"), {ID: "x"}},
		"1 cell failed: g: " + strings.Repeat("x", 116) + "…":                      {refused("a", "g", verdict.Fail, strings.Repeat("x", 1000))},
		"1 cell failed: g: red":                                                    {refused("a", "g", verdict.Fail, "\x1b[31mred\x1b[0m")},
	} {
		check.Same(t, "Headline", want, report.Headline(report.Run{Cells: cells}))
	}
}

// Cells with the same reason share one entry. Errors come before refusals of gates.
func TestReasons(t *testing.T) {
	run := report.Run{Cells: []report.Cell{
		{ID: "skipped"}, refused("a", "size", verdict.Fail, "too large"), passed("fine", "1"), refused("b", "size", verdict.Fail, "too large"),
		refused("c", "size", verdict.Fail, "larger"), failed("d", "fetch"), refused("e", "gpu", verdict.NotMeasured, "no GPU"),
	}}
	var got []string
	for _, r := range report.Reasons(run) {
		got = append(got, fmt.Sprintf("%s %s %s", r.Status, r.What, r.Cells))
	}
	want := "error fetch [d], fail size [a b], fail size [c], not-measured gpu [e], skipped not built [skipped]"
	check.That(t, strings.Join(got, ", ") == want, "got %s", strings.Join(got, ", "))
	waived := passed("w", "1")
	waived.Verdicts = append(waived.Verdicts, verdict.Verdict{Gate: "x", Status: verdict.Waived})
	all := report.Reasons(report.Run{Cells: []report.Cell{waived}})
	check.That(t, len(all) == 0, "a waived gate keeps nothing back: %v", all)
}
