package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/machine/nccllog"
	"builder/internal/plan/diagnose"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

const diagnoseDescription = `Reads the log of a build or of a job, a wheel or a shared library, and prints each
known failure in it: the place, the cause and the remedy. The content of a file
decides its type. A directory means the logs and wheels of the cells in it, - means
standard input. Logs may be of any size.

A finding is a result, so the exit code is 0 with or without findings. With
--exit-code a finding that is an error makes it 6, as at a gate. An unreadable file
is exit 2.`

func diagnoseCommand(cat catalogue.Catalogue, out printer) *cli.Command {
	return &cli.Command{
		Name: "diagnose", Usage: "find known failures in the log of a build or job, a wheel or a library", ArgsUsage: "FILE… | DIR | -",
		Description: diagnoseDescription, OnUsageError: usageError, HideHelpCommand: true,
		Flags: []cli.Flag{
			recipesFlag(),
			jsonFlag(),
			&cli.BoolFlag{Name: "exit-code", Usage: "exit with 6 if a finding is an error"},
			&cli.BoolFlag{Name: "list", Usage: "print the catalogue of known failures and examine nothing"},
		},
		Action: func(c *cli.Context) error {
			known, err := cat.Diagnoses()
			if err != nil {
				return err
			}
			if c.Bool("list") {
				return errors.Join(unexpected(c, 0), listDiagnoses(known, c.Bool("json"), out))
			}
			files, err := app.Diagnosable(c.Args().Slice())
			if err != nil {
				return err
			}
			return doDiagnose(c, &app.Session{Catalogue: cat}, files, out)
		},
	}
}

// doDiagnose prints the findings in each file and returns the errors of files it could
// not examine.
func doDiagnose(c *cli.Context, s *app.Session, files []string, out printer) error {
	reports, err := app.Diagnose(c.Context, s, files, os.Stdin)
	errs := []error{err, out.print(c.Bool("json"), app.DiagnosedJSON(reports), func() { printReports(out, reports) })}
	if n := count(reports)[diagnose.Error]; c.Bool("exit-code") && n > 0 {
		errs = append(errs, diag.Errorf(diag.Gate, "%s found", plural(n, "error")))
	}
	return errors.Join(errs...)
}

func printReports(out printer, reports []app.Examined) {
	for _, r := range reports {
		for _, f := range r.Findings {
			printFinding(out, r.Report, f)
		}
		if r.Run != nil {
			printRun(out, r.File, r.Run)
		}
		if len(r.Findings) == 0 {
			out.say("%s: no known failure in %s", r.File, extent(r.Report))
		}
	}
	n := count(reports)
	job := func(r app.Examined) bool { return r.Run != nil || r.Kind != "log" }
	if len(n) == 0 && len(reports) > 0 && !slices.ContainsFunc(reports, job) {
		out.note("no known failure: read the end of the log; if the step packages, source, patch, canary or build failed, `builder debug shell CELL` opens a shell before it; docs/recipes.md says how to add a failure of your own")
	}
	if len(n) > 0 {
		var parts []string
		for _, s := range diagnose.Severities() {
			parts = append(parts, plural(n[s], string(s)))
		}
		out.say("%s: %s", plural(len(reports), "file"), strings.Join(parts, ", "))
	}
}

// printRun prints the facts of a run found in a log.
func printRun(out printer, file string, r *nccllog.Run) {
	out.say("%s: a run of %s", term.Clean(file), term.Clean(r.Speaker()))
	for _, row := range r.Rows() {
		out.say("  %-13s%s", row.About, term.Clean(row.Text))
	}
	out.say("")
}

// printFinding prints the place, the symptom, the cause and the remedy.
func printFinding(out printer, r diagnose.Report, f diagnose.Finding) {
	where := r.File
	if f.Member != "" {
		where += ": " + f.Member
	}
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	out.say("%s: %s: %s", term.Clean(where), f.Severity, f.Name)
	out.say("    %s", strings.TrimSpace(term.Clean(f.Text)))
	row := func(name, text string) { out.say("  %-8s%s", name, text) }
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
	out.say("")
}

// extent returns how much of a file was examined.
func extent(r diagnose.Report) string {
	if r.Kind == "log" {
		return plural(r.Lines, "line")
	}
	return fmt.Sprintf("a %s (%s)", r.Kind, plural(r.Lines, "fact"))
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// count returns the number of findings by severity; the map is empty without findings.
func count(reports []app.Examined) map[diagnose.Severity]int {
	n := map[diagnose.Severity]int{}
	for _, r := range reports {
		for _, f := range r.Findings {
			n[f.Severity]++
		}
	}
	return n
}

// listDiagnoses prints the known failures, grouped by topic.
func listDiagnoses(known []diagnose.Diagnosis, asJSON bool, out printer) error {
	if asJSON {
		return printJSON(out, known)
	}
	var rows [][]string
	for _, d := range known {
		var of []string
		for _, s := range d.AppliesTo {
			of = append(of, string(s))
		}
		rows = append(rows, []string{d.Name, string(d.Severity), strings.Join(of, ", "), d.Cause})
	}
	out.table([]string{plural(len(known), "known failure"), "severity", "seen in", "why"}, rows)
	return nil
}
