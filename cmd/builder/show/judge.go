package show

import (
	"fmt"
	"slices"
	"strings"

	"builder/internal/app/judge"
	"builder/internal/base/size"
	"builder/internal/files/inspect"
	"builder/internal/gates/device"
	"builder/internal/machine/nccllog"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

// printFacts prints the facts of a file.
func printFacts(out term.Printer, is inspect.Report) {
	var rows [][]string
	for _, f := range is.Facts {
		value := strings.Join(f.Values, ", ")
		if f.Claim != "" && f.Claim != value {
			value += fmt.Sprintf(" (%s by its version)", f.Claim)
		}
		rows = append(rows, []string{f.Name, value, strings.Join(f.Because, "; ")})
	}
	out.Table([]string{is.Kind, "is", "seen"}, rows)
}

// Shown prints what each artifact is, and its origin.
func Shown(out term.Printer, r judge.ShowReport) {
	for _, a := range r.Artifacts {
		out.Say("%s sha256:%s, %s", a.Name, a.SHA256, size.Text(a.Size))
		if a.Is != nil {
			printFacts(out, *a.Is)
		}
		if a.Fault != "" {
			out.Say("its contents are unreadable: %s", a.Fault)
		}
		if len(a.Nodes) > 0 {
			out.Say("runs on %s and newer systems", strings.Join(a.Nodes, ", "))
		}
		rows := [][]string{{"unknown", a.Doubt}}
		if o := a.Origin; o != nil {
			rows = [][]string{
				{"cell", o.Cell}, {"key", o.Key}, {"source", o.Source}, {"patches", strings.Join(o.Patches, ", ")}, {"image", o.Image},
				{"built", o.Built}, {"signed by", strings.Join(o.Signers, ", ")}, {"tested", o.Proven.String()},
			}
			for _, what := range o.NotAsked {
				rows = append(rows, []string{"not asked", what})
			}
		}
		out.Table([]string{"origin", "is"}, rows)
	}
}

// Gated prints the verdicts about each artifact.
func Gated(out term.Printer, r judge.GateReport) {
	for _, a := range r.Artifacts {
		if a.SHA256 == "" { // an environment
			out.Say("%s", a.Name)
		} else {
			out.Say("%s sha256:%s", a.Name, a.SHA256)
		}
		if a.Is != nil {
			printFacts(out, *a.Is)
		}
		if len(a.Verdicts) == 0 {
			continue
		}
		var rows [][]string
		for _, v := range a.Verdicts {
			from := "now"
			if a.Attached[v.Gate] {
				from = "attached"
			}
			rows = append(rows, []string{v.Gate, v.Status.String(), from, fmt.Sprintf("%.1fs", v.Seconds), v.Evidence})
		}
		out.Table([]string{"gate", "status", "from", "time", "evidence"}, rows)
	}
}

// Verified prints the checks of each artifact.
func Verified(out term.Printer, r judge.VerifyReport) {
	for _, a := range r.Artifacts {
		out.Say("%s sha256:%s", a.Name, a.SHA256)
		var rows [][]string
		for _, c := range a.Checks {
			status, text := "pass", c.Seen
			if len(c.Wrong) > 0 {
				status, text = "fail", strings.Join(c.Wrong, "; ")
			}
			rows = append(rows, []string{c.Name, status, text})
		}
		out.Table([]string{"check", "status", "seen"}, rows)
	}
}

// Bench prints the speed of one library, or of two.
func Bench(out term.Printer, r judge.BenchReport) {
	header := []string{"collective", "size", r.Library + ", GB/s"}
	if r.Other != "" {
		header = append(header, r.Other+", GB/s", "ratio")
	}
	var rows [][]string
	for _, s := range r.Sizes {
		row := []string{s.Collective, device.SizeText(s.Bytes), fmt.Sprintf("%.2f", s.BusBW)}
		if r.Other != "" {
			row = append(row, fmt.Sprintf("%.2f", s.Other), fmt.Sprintf("%.2f", s.Ratio))
		}
		rows = append(rows, row)
	}
	out.Table(header, rows)
}

// Diagnosed prints the findings in each file.
func Diagnosed(out term.Printer, reports []judge.Examined) {
	for _, r := range reports {
		for _, f := range r.Findings {
			printFinding(out, r.Report, f)
		}
		unseen := ", and none shows NCCL or RCCL at work" // no evidence of the library that the job should have used
		if r.Run != nil {
			printRun(out, r.File, r.Run)
			unseen = ""
		}
		if len(r.Findings) == 0 {
			out.Say("%s: no known failure in %s%s", r.File, size.Count(r.Lines, "line"), unseen)
		}
	}
	n := Count(reports)
	job := func(r judge.Examined) bool { return r.Run != nil }
	if len(n) == 0 && len(reports) > 0 && !slices.ContainsFunc(reports, job) {
		out.Note("no known failure: read the end of the log; if the step packages, source, patch, canary or build failed, `builder debug shell CELL` opens a shell before it; NCCL and RCCL show themselves only with NCCL_DEBUG=INFO; docs/recipes.md says how to add a failure of your own")
	}
	if len(n) > 0 {
		var parts []string
		for _, s := range diagnose.Severities() {
			parts = append(parts, size.Count(n[s], string(s)))
		}
		out.Say("%s: %s", size.Count(len(reports), "file"), strings.Join(parts, ", "))
	}
}

// printRun prints the facts of a run found in a log.
func printRun(out term.Printer, file string, r *nccllog.Evidence) {
	out.Say("%s: a run of %s", term.Clean(file), term.Clean(r.Speaker()))
	for _, row := range r.Rows() {
		out.Say("  %-10s%s", row.About, term.Clean(row.Text))
	}
	out.Say("")
}

// printFinding prints the place, the symptom, the cause and the remedy.
func printFinding(out term.Printer, r diagnose.Report, f diagnose.Finding) {
	out.Say("%s:%d: %s: %s", term.Clean(r.File), f.Line, f.Severity, f.Name)
	out.Say("    %s", strings.TrimSpace(term.Clean(f.Text)))
	row := func(name, text string) { out.Say("  %-8s%s", name, text) }
	row("why", f.Cause)
	row("do", f.Remedy)
	if f.MendedBy != nil {
		row("here", f.MendedBy.String())
	}
	if len(f.Versions) > 0 {
		row("seen in", matrix.Pairs(f.Versions))
	}
	if f.Count > 1 {
		row("shown", fmt.Sprintf("%d times", f.Count))
	}
	row("source", f.Source)
	out.Say("")
}

// Count returns the number of findings by severity; the map is empty without findings.
func Count(reports []judge.Examined) map[diagnose.Severity]int {
	n := map[diagnose.Severity]int{}
	for _, r := range reports {
		for _, f := range r.Findings {
			n[f.Severity]++
		}
	}
	return n
}
