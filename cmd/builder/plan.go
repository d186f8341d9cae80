package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/build/results"
	"builder/internal/evidence/attest"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/pipelines"
)

func planCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "explain what run would do, and do nothing", ArgsUsage: "RECIPE [axes]",
		Flags: []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, planFlags(), func(c *cli.Context, o options) error {
			if c.Bool("all") {
				o.filter = open(o.recipe, o.filter, true)
			}
			with, err := readComparison(c, o)
			if err != nil {
				return err
			}
			p, err := makePlan(cat, o, with)
			if err != nil {
				return err
			}
			return errors.Join(p.print(out, o.json), p.refusal(c.Context, cat, o))
		}),
	}
}

// plan is what run would do.
type plan struct {
	Recipe   string        `json:"recipe"`
	Cells    []plannedCell `json:"cells"`
	Excluded []excluded    `json:"excluded"`
}

type plannedCell struct {
	ID      string            `json:"id"`
	Key     string            `json:"key,omitempty"` // empty while the lock lacks something
	Axes    map[string]string `json:"axes"`
	Chosen  []string          `json:"chosen"` // axes whose value was chosen by preference
	Forced  []matrix.Forced   `json:"forced"` // values that nobody asked for and nobody prefers: a rule leaves no other
	Site    []string          `json:"site"`   // what of it a site brings, and whether that replaces something
	Image   string            `json:"image"`
	Runtime string            `json:"runtime"`
	Source  string            `json:"source"`
	Python  []string          `json:"python"`
	Inputs  []string          `json:"inputs,omitempty"` // ids of the cells that go into it
	// Provided is what the platform brings to a stack, and why.
	Provided []string          `json:"provided,omitempty"`
	Patches  []plannedPatch    `json:"patches"`
	Env      map[string]string `json:"env"`
	Steps    []string          `json:"steps"`
	Gates    []string          `json:"gates"`
	Stable   string            `json:"stable,omitempty"`  // why the channel stable cannot be reached
	Missing  string            `json:"missing,omitempty"` // what the lock lacks
	// Unstated says why the lock lacks what one place alone can tell, and what to do.
	Unstated []string     `json:"unstated,omitempty"`
	Known    bool         `json:"known"`          // the result is in the store
	Diff     *plannedDiff `json:"diff,omitempty"` // what changed since the last run, if that was asked
}

type plannedPatch struct {
	Name    string      `json:"name"`
	Applies bool        `json:"applies"`
	State   patch.State `json:"state"` // not measured where it applies: no tree has been seen
	Because string      `json:"because"`
}

type excluded struct {
	Axes    map[string]string `json:"axes"`
	Because string            `json:"because"`
	Source  string            `json:"source"`
	Instead []string          `json:"instead"` // what goes together
}

// makePlan explains what run would do; with may be nil.
func makePlan(cat catalogue.Catalogue, o options, with comparison) (plan, error) {
	drafts, left, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return plan{}, err
	}
	asm := assembler(cat, o)
	f, err := asm.Locks.Read(o.recipe.Name)
	if err != nil {
		return plan{}, err
	}
	known, err := knownResults(o.home)
	if err != nil {
		return plan{}, err
	}
	p := plan{Recipe: o.recipe.Name, Cells: []plannedCell{}, Excluded: []excluded{}}
	for _, d := range drafts {
		cell, err := planCell(asm, d, f, known, with)
		if err != nil {
			return plan{}, err
		}
		for _, why := range f.Missing([]lock.Draft{d}).Unstated() {
			cell.Unstated = append(cell.Unstated, fmt.Sprintf("%s: `%s`", why, cat.PinCommand(o.recipe.Name, o.filter)))
		}
		p.Cells = append(p.Cells, cell)
	}
	for _, e := range left {
		p.Excluded = append(p.Excluded, excluded{e.Axes, e.Because, e.Source, notNil(e.Instead)})
	}
	return p, nil
}

// knownResults opens the results without making a store where there is none.
func knownResults(home string) (func(key string) bool, error) {
	dir := filepath.Join(home, "store")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return func(string) bool { return false }, nil
	}
	s, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	return results.New(s).Sealed(sealing(home, nil)).Has, nil
}

func planCell(asm *assemble.Assembler, d lock.Draft, f lock.File, known func(key string) bool, with comparison) (plannedCell, error) {
	chosen, forced, err := matrix.Reasons(d.Cell)
	if err != nil {
		return plannedCell{}, err
	}
	c := plannedCell{
		Site: asm.Locks.OfSite(d), Stable: attest.Stable.Unreachable(d.Settings.Expect),

		ID: d.Cell.ID, Axes: d.Cell.Axes, Chosen: chosen, Forced: forced,
		Image: d.Image.Name, Runtime: d.Runtime.Name,
		Source: d.Source.Project + " " + d.Source.Version,
		Python: notNil(d.Settings.Requires.Build), Env: d.Settings.Env, Provided: providedBy(d.Settings.Expect.Wheelhouse),
		Patches: []plannedPatch{}, Steps: []string{"fetch", "engine"}, Gates: []string{},
	}
	for _, choice := range d.Patches {
		c.Patches = append(c.Patches, plannedPatch{choice.Patch.Name, choice.Applies, choice.State, choice.Because})
	}
	c.Steps = append(c.Steps, pipelines.StepNames(d)...)
	for _, g := range gate.Wanted(d.Settings.Expect, gate.Container) {
		c.Gates = append(c.Gates, g.Name)
	}
	if d.Settings.Expect.Wheelhouse != nil { // nothing is built of a source
		c.Source, c.Python = "its parts", notNil(d.Settings.Requires.Run)
	}
	entries, err := lock.Assemble([]lock.Draft{d}, f, asm.Revision)
	if err != nil {
		c.Missing = f.Missing([]lock.Draft{d}).String()
		if with != nil {
			c.Diff = undecided()
		}
		return c, nil
	}
	if _, err := asm.Inputs(context.Background(), d, &entries[0]); err != nil {
		c.Missing = err.Error()
		return c, nil
	}
	for _, in := range entries[0].Inputs {
		c.Inputs = append(c.Inputs, in.ID)
	}
	c.Key = entries[0].Key()
	c.Known = known(c.Key)
	if with != nil {
		c.Diff, err = with.diff(d, entries[0], c.Known)
	}
	return c, err
}

// providedBy says what the platform brings to a stack.
func providedBy(house *recipe.Wheelhouse) []string {
	if house == nil {
		return nil
	}
	var all []string
	for _, p := range house.Provided {
		all = append(all, p.Project+": "+p.Because)
	}
	return all
}

// notNil makes an empty list of none: in JSON a list is never null.
func notNil(list []string) []string { return append([]string{}, list...) }

func (p plan) print(out printer, asJSON bool) error {
	if asJSON {
		return printJSON(out, p)
	}
	for i, c := range p.Cells {
		if i > 0 {
			out.say("")
		}
		c.print(out)
	}
	for i, e := range p.Excluded {
		if i == 0 {
			out.say("\nexcluded")
		}
		out.say("  %s: %s (%s)", matrix.Pairs(e.Axes), e.Because, e.Source)
		for _, row := range e.Instead {
			out.say("    goes together: %s", row)
		}
	}
	return nil
}

func (c plannedCell) print(out printer) {
	out.say("%s", c.ID)
	line := func(name, format string, args ...any) { out.say("  %-9s%s", name, fmt.Sprintf(format, args...)) }
	line("axes", "%s", matrix.Pairs(c.Axes))
	if len(c.Chosen) > 0 {
		line("", "by preference: %s", strings.Join(c.Chosen, ", "))
	}
	for _, f := range c.Forced {
		line("", "by a rule: %s=%s: %s (%s)", f.Axis, f.Value, f.Because, f.Source)
	}
	for _, what := range c.Site {
		line("site", "%s", what)
	}
	line("image", "%s", c.Image)
	line("runtime", "%s", c.Runtime)
	line("source", "%s", c.Source)
	if len(c.Python) > 0 {
		line("python", "%s", strings.Join(c.Python, " "))
	}
	for _, in := range c.Inputs {
		line("input", "%s", in)
	}
	for _, p := range c.Provided {
		line("platform", "%s", p)
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
	if c.Stable != "" {
		line("channel", "candidate: %s", c.Stable)
	}
	switch {
	case c.Missing != "":
		line("lock", "lacks %s: run resolves it", c.Missing)
		for _, why := range c.Unstated {
			line("", "%s", why)
		}
	case c.Known:
		line("lock", "complete, key %s; the result is in the store", c.Key[:12])
	default:
		line("lock", "complete, key %s; to be built", c.Key[:12])
	}
	if c.Diff != nil {
		c.Diff.explain(line)
	}
}
