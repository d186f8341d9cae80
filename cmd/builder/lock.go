package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"builder/internal/assemble"
	"builder/internal/catalogue"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/matrix"
	"builder/internal/term"
)

func lockCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "resolve names to digests and write the lock", ArgsUsage: "RECIPE [axes]",
		Description: "The only command that asks what a name means today. In a checkout of the\nrecipes, `--recipes .` writes the lock beside the recipe.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, lockFlags(), func(c *cli.Context, o options) error {
			m, err := readMoves(c)
			if err != nil {
				return err
			}
			if m.none {
				return checkLock(cat, o, out)
			}
			return moveLock(c.Context, cat, o, m, out)
		}),
	}
}

func lockFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(),
		&cli.BoolFlag{Name: "check", Usage: "only compare: exit 3 if the lock was edited, or lacks something that the cells need"},
		&cli.BoolFlag{Name: "update", Usage: "resolve every name again, not only what is missing"},
		&cli.StringSliceFlag{Name: "upgrade", Usage: "resolve again what pins `NAME`: a source, an image, a package of an image, a Python package; repeatable"},
		&cli.BoolFlag{Name: "prune", Usage: "drop what no cell of the recipe needs any more"},
	)
}

// moves says which pins a command is to move.
type moves struct {
	none    bool     // only compare
	all     bool     // every pin of the chosen cells
	holding []string // those that pin one of the names
	prune   bool     // and those that no cell needs go
}

func readMoves(c *cli.Context) (moves, error) {
	m := moves{c.Bool("check"), c.Bool("update"), c.StringSlice("upgrade"), c.Bool("prune")}
	switch {
	case m.none && (m.all || m.prune || len(m.holding) > 0):
		return m, diag.Errorf(diag.Usage, "--check writes nothing and --update, --upgrade and --prune do: give one of them")
	case m.all && len(m.holding) > 0:
		return m, diag.Errorf(diag.Usage, "--update moves every pin and --upgrade those of a name: give one of them")
	}
	return m, nil
}

// checkLock compares the lock with what the chosen cells need. What no cell of
// the recipe needs is said, and is no fault.
func checkLock(cat catalogue.Catalogue, o options, out printer) error {
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return err
	}
	asm := assembler(cat, o)
	f, err := asm.Locks.Read(o.recipe.Name)
	if err != nil {
		return err
	}
	if _, err := asm.Pinned(o.recipe.Name, o.filter, drafts, f); err != nil {
		return err
	}
	result := lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: []lock.PinChange{}}
	left, err := unneeded(cat, o, drafts)
	switch {
	case err != nil:
		out.note("cannot say whether the lock pins what no cell needs: %v", err)
	case !left.None():
		result.Unneeded = left.String()
		out.note("no cell needs any more what the lock of %s pins: %s; `%s --prune` drops it", o.recipe.Name, left, cat.PinCommand(o.recipe.Name, nil))
	}
	if o.json {
		return printJSON(out, result)
	}
	cells := fmt.Sprintf("%d cells", len(drafts))
	if len(drafts) == 1 {
		cells = drafts[0].Cell.ID
	}
	out.say("the lock of %s pins everything for %s", o.recipe.Name, cells)
	return nil
}

// unneeded returns what the lock at the lock path pins and no cell of the recipe
// needs; drafts are those that were chosen, which are often enough to tell.
func unneeded(cat catalogue.Catalogue, o options, drafts []lock.Draft) (lock.File, error) {
	own, err := cat.Locks(o.home).Own(o.recipe.Name)
	if err != nil {
		return own, err
	}
	left := own.Unneeded(drafts)
	if left.None() {
		return left, nil
	}
	all, err := everyCell(cat, o)
	return left.Unneeded(all), err
}

// everyCell drafts all cells of a recipe, whatever was chosen.
func everyCell(cat catalogue.Catalogue, o options) ([]lock.Draft, error) {
	o.filter = matrix.Everything(o.recipe)
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	return drafts, err
}

// lockResult is what lock says as JSON.
type lockResult struct {
	Recipe   string           `json:"recipe"`
	Cells    []string         `json:"cells"`
	Changes  []lock.PinChange `json:"changes"`
	Unneeded string           `json:"unneeded,omitempty"` // what no cell of the recipe needs
	Wrote    string           `json:"wrote,omitempty"`    // path of the lock, if it was written
}

func cellIDs(drafts []lock.Draft) []string {
	ids := make([]string, len(drafts))
	for i, d := range drafts {
		ids[i] = d.Cell.ID
	}
	return ids
}

// moveLock resolves what is missing and what is to move, writes the lock, and
// prints what changed.
func moveLock(ctx context.Context, cat catalogue.Catalogue, o options, m moves, out printer) error {
	if o.locked || o.offline {
		return diag.Errorf(diag.Usage, "lock resolves names: --locked and --offline forbid just that")
	}
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return err
	}
	asked, err := m.questions(cat, o, drafts)
	if err != nil {
		return err
	}
	u := catalogue.Update{Replace: m.all}
	if m.prune {
		all, err := everyCell(cat, o)
		if err != nil {
			return err
		}
		u.Drop = func(own lock.File) lock.File { return own.Unneeded(all) }
	}
	w, err := openWorkspace(ctx, o, out.note)
	if err != nil {
		return err
	}
	defer w.close()
	if u.Pins, err = w.resolver().Resolve(ctx, o.recipe.Name, asked); err != nil {
		return err
	}
	done, err := cat.Locks(o.home).Update(o.recipe.Name, u)
	if err != nil {
		return err
	}
	return printLock(out, o, drafts, done)
}

// questions returns what is to be resolved. Where that is every name no pin is
// read: a lock that was edited by hand can be replaced.
func (m moves) questions(cat catalogue.Catalogue, o options, drafts []lock.Draft) (lock.Missing, error) {
	f, err := cat.Locks(o.home).Read(o.recipe.Name)
	if m.all && (err == nil || errors.Is(err, lock.ErrEdited)) {
		return lock.File{}.Missing(drafts), nil
	}
	if err != nil {
		return lock.Missing{}, err
	}
	held, err := f.Holding(m.holding, drafts)
	return f.Missing(drafts).And(held), err
}

func printLock(out printer, o options, drafts []lock.Draft, done catalogue.Updated) error {
	result := lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: lock.Compare(done.Before, done.After)}
	if done.Wrote {
		result.Wrote = done.Path
	}
	if done.Edited {
		out.note("%s was edited by hand: none of its pins is kept", done.Path)
	}
	if o.json {
		return printJSON(out, result)
	}
	result.print(out)
	return nil
}

func (r lockResult) print(out printer) {
	var rows [][]string
	for _, c := range r.Changes {
		rows = append(rows, []string{c.Kind, c.Name, dash(c.Was), dash(c.Is)})
	}
	if len(rows) > 0 {
		term.Table(out.stdout, term.Width(out.stdout), []string{"kind", "name", "was", "is"}, rows)
	}
	if r.Wrote == "" {
		out.say("nothing changed")
	} else {
		out.say("wrote %s", r.Wrote)
	}
}

// dash stands in a table where there is nothing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
