// Package show prints what the verbs return: texts and tables for people, and JSON where
// it differs from the returned value.
package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/app/plan"
	"builder/internal/plan/matrix"
	"builder/internal/plan/proven"
	"builder/internal/view/term"
)

// Plan prints the planned cells and the excluded combinations.
func Plan(out term.Printer, p plan.Plan) {
	for i, c := range p.Cells {
		if i > 0 {
			out.Say("")
		}
		printPlannedCell(out, c)
	}
	if len(p.Excluded) > 0 {
		out.Say("\nexcluded")
	}
	of := map[string]int{} // exclusions by reason
	for _, e := range p.Excluded {
		of[e.Because]++
	}
	for _, e := range p.Excluded {
		n := of[e.Because]
		if n == 0 { // printed as one of many
			continue
		}
		if n > mostAlike {
			of[e.Because] = 0
			out.Say("  %d combinations, such as %s: %s (%s)", n, matrix.Pairs(e.Axes), e.Because, e.Source)
		} else {
			out.Say("  %s: %s (%s)", matrix.Pairs(e.Axes), e.Because, e.Source)
		}
		for _, row := range e.Instead {
			out.Say("    compatible: %s", row)
		}
	}
}

func printPlannedCell(out term.Printer, c plan.PlannedCell) {
	out.Say("%s", c.ID)
	line := func(name, format string, args ...any) { out.Say("  %-9s%s", name, fmt.Sprintf(format, args...)) }
	line("axes", "%s", matrix.Pairs(c.Axes))
	if len(c.Chosen) > 0 {
		line("", "by preference: %s", strings.Join(c.Chosen, ", "))
	}
	for _, by := range c.By {
		line("", "by --%s %s: %s: %s (%s)", by.Name, by.Value, matrix.Pairs(by.Axes), by.Because, by.Source)
	}
	for _, f := range c.Forced {
		line("", "by a rule: %s=%s: %s (%s)", f.Axis, f.Value, f.Because, f.Source)
	}
	for _, what := range c.Site {
		line("site", "%s", what)
	}
	line("image", "%s", from(c.Image, c.ImageFrom))
	line("runtime", "%s", from(c.Runtime, c.RuntimeFrom))
	if c.CPython != "" {
		line("cpython", "%s, laid into both images", c.CPython)
	}
	line("source", "%s", from(c.Source, c.From))
	if len(c.Python) > 0 {
		line("python", "%s", strings.Join(c.Python, " "))
	}
	for _, in := range c.Inputs {
		if slices.Contains(c.Unproven, in) {
			in += ", never built"
		}
		line("input", "%s", in)
	}
	for _, p := range c.Patches {
		sign := "apply"
		if !p.Applies {
			sign = "leave"
		}
		line("patch", "%s %s: %s", sign, p.Name, p.Because)
	}
	if len(c.Env) > 0 {
		line("env", "%s", matrix.Pairs(c.Env))
	}
	line("steps", "%s", strings.Join(c.Steps, ", "))
	line("gates", "%s", strings.Join(c.Gates, ", "))
	if len(c.OnGPUs) > 0 {
		line("on gpus", "%s, for the channel stable", strings.Join(c.OnGPUs, ", "))
	}
	if sys := c.Systems; sys != nil {
		load := strings.Join(sys.Load, ", ")
		if load == "" {
			load = "no listed release has it"
		}
		line("systems", "glibc %s or newer: %s", sys.Glibc, load)
		if len(sys.Old) > 0 {
			line("", "too old: %s", strings.Join(sys.Old, ", "))
		}
		if sys.Also != "" {
			line("", "needed too: %s", sys.Also)
		}
	}
	if t := c.Tests; t != nil {
		line("tests", "none of upstream's; --tests quick runs upstream-tests, about %s, --tests full also upstream-tests-full, about %s", seconds(t.Quick), seconds(t.Full))
	}
	if c.Stable != "" {
		line("channel", "candidate: %s", c.Stable)
	}
	if c.Known && !c.Proven.Built {
		line("proven", "no build is recorded in %s; this host has built or taken it", proven.Name)
	} else {
		line("proven", "%s", c.Proven)
	}
	switch {
	case c.Missing != "":
		line("lock", "lacks %s, which run resolves", c.Missing)
		for _, why := range c.Unstated {
			line("", "%s", why)
		}
	case c.Known:
		line("lock", "complete, key %s; the result is in the store, made in %s", c.Key[:12], seconds(int(c.Took)))
	default:
		line("lock", "complete, key %s; to be built", c.Key[:12])
	}
}

// from adds the origin of an input to its name; "" is none.
func from(name, origin string) string { return strings.TrimSuffix(name+", "+origin, ", ") }

// seconds formats a number of seconds as a duration.
func seconds(n int) string { return (time.Duration(n) * time.Second).String() }

// mostAlike is the number of exclusions with the same reason that are printed one by
// one. --json has all.
const mostAlike = 3
