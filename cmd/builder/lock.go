package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/internal/deb"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/pypi"
)

func lockCommand(cat catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "resolve names to digests and write the lock", ArgsUsage: "RECIPE [axes]",
		Description: "The only command that asks what a name means today. In a checkout of the\nrecipes, `--recipes .` writes the lock beside the recipe.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, lockFlags(), func(c *cli.Context, o options) error {
			if c.Bool("check") && c.Bool("update") {
				return diag.Errorf(diag.Usage, "--check writes nothing and --update does: give one of them")
			}
			if c.Bool("check") {
				return checkLock(cat, o, out)
			}
			return updateLocks(c.Context, cat, o, c.Bool("update"), out)
		}),
	}
}

// checkLock compares the lock with what the chosen cells need.
func checkLock(cat catalogue, o options, out printer) error {
	drafts, _, err := choose(cat, o)
	if err != nil {
		return err
	}
	f, err := cat.readLock(o.home, o.recipe.Name)
	if err != nil {
		return err
	}
	if _, err := assemble(cat, o, drafts, f); err != nil {
		return err
	}
	if o.json {
		return printJSON(out, lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: []string{}})
	}
	cells := fmt.Sprintf("%d cells", len(drafts))
	if len(drafts) == 1 {
		cells = drafts[0].Cell.ID
	}
	out.say("the lock of %s pins everything for %s", o.recipe.Name, cells)
	return nil
}

// lockResult is what lock says as JSON.
type lockResult struct {
	Recipe  string   `json:"recipe"`
	Cells   []string `json:"cells"`
	Changes []string `json:"changes"`
	Wrote   string   `json:"wrote,omitempty"` // path of the lock, if it was written
}

func cellIDs(drafts []lock.Draft) []string {
	ids := make([]string, len(drafts))
	for i, d := range drafts {
		ids[i] = d.Cell.ID
	}
	return ids
}

// updateLocks resolves what is missing, or everything, and prints what changed.
func updateLocks(ctx context.Context, cat catalogue, o options, all bool, out printer) error {
	if o.locked || o.offline {
		return diag.Errorf(diag.Usage, "lock resolves names: --locked and --offline forbid just that")
	}
	drafts, _, err := choose(cat, o)
	if err != nil {
		return err
	}
	w, err := openWorkspace(o, out.note)
	if err != nil {
		return err
	}
	before, err := cat.readLock(o.home, o.recipe.Name)
	if err != nil {
		return err
	}
	missing := before.Missing(drafts)
	if all {
		missing = lock.File{}.Missing(drafts)
	}
	resolved, err := w.resolver().Resolve(ctx, o.recipe.Name, missing)
	if err != nil {
		return err
	}
	path := cat.lockPath(o.home, o.recipe.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	wrote, err := updateLock(path, o.recipe.Name, resolved)
	if err != nil {
		return err
	}
	result := lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: notNil(difference(before, before.With(resolved)))}
	if wrote {
		result.Wrote = path
	}
	return result.print(out, o.json)
}

func (r lockResult) print(out printer, asJSON bool) error {
	if asJSON {
		return printJSON(out, r)
	}
	for _, line := range r.Changes {
		out.say("%s", line)
	}
	if r.Wrote == "" {
		out.say("nothing changed")
	} else {
		out.say("wrote %s", r.Wrote)
	}
	return nil
}

// difference lists what another lock pins differently, a line for each pin.
func difference(before, after lock.File) []string {
	was, is := pins(before), pins(after)
	var lines []string
	for name, now := range is {
		switch then, ok := was[name]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("+ %s %s", name, now))
		case then != now:
			lines = append(lines, fmt.Sprintf("~ %s %s, was %s", name, now, then))
		}
	}
	for name, then := range was {
		if _, ok := is[name]; !ok {
			lines = append(lines, fmt.Sprintf("- %s %s", name, then))
		}
	}
	slices.Sort(lines)
	return lines
}

// pins names every pin of a lock and what it is pinned to.
func pins(f lock.File) map[string]string {
	all := map[string]string{}
	for _, s := range f.Sources {
		all["source "+s.Project] = pinned(s.File)
	}
	for _, i := range f.Images {
		if i.Digest != "" {
			all["image "+i.Name] = i.Digest
		}
		for _, p := range i.Packages {
			all["image "+i.Name+" "+p.Name] = debPinned(p)
		}
	}
	for _, p := range f.Python {
		for _, file := range p.Files {
			all["python "+p.Python+" "+file.Project] = pinned(file)
		}
	}
	return all
}

func pinned(f pypi.File) string      { return f.Version + " " + f.SHA256[:12] }
func debPinned(p deb.Package) string { return p.Version + " " + p.SHA256[:12] }
