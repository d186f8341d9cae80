package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

func lockCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "resolve names to digests and write the lock", ArgsUsage: "[RECIPE] [axes]",
		Description: "The only command that asks what a name means today. With `--recipes DIR` the lock\nis DIR/recipes/RECIPE.lock.json, laid over the built-in one; in a checkout of the\nrecipes, `--recipes .` writes the lock beside the recipe.\n\nRECIPE alone is its preferred cell, RECIPE --all every cell of it, and --all without\nRECIPE every cell of every recipe and stack. What can be resolved is written, also\nwhere a registry that only some cells need cannot be reached. --all --check ends with 0\nwhere the cells that are not locked lack only what a registry or a repository has to\nbe asked.",
		Flags:       lockFlags(), OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: func(c *cli.Context) error {
			if fault != nil || c.Args().Present() || !c.Bool("all") {
				return unknownRecipe(cat, fault)(c)
			}
			return lockCatalogue(c, cat, out)
		},
		Subcommands: recipeCommands(cat, fault, lockFlags(), func(c *cli.Context, o options) error {
			m, err := readMoves(c)
			if err = errors.Join(err, flagsBefore(c)); err != nil {
				return err
			}
			if m.every {
				o.filter = open(o.recipe, o.filter, true)
			}
			result, err := lockRecipe(c.Context, cat, o, m, out)
			if result.Recipe == "" {
				return err
			}
			if o.json {
				return errors.Join(err, printJSON(out, result))
			}
			result.print(out)
			return err
		}),
	}
}

// flagsBefore refuses flags that stand before the recipe: they are for all recipes,
// and would be lost. What the environment says is said to both.
func flagsBefore(c *cli.Context) error {
	for _, name := range c.Lineage()[1].LocalFlagNames() {
		if name != "recipes" && !slices.Contains(c.LocalFlagNames(), name) {
			return diag.Errorf(diag.Usage, "--%s stands before the recipe", name).
				WithHint("flags come after the recipe: %s --%s", c.Command.HelpName, name)
		}
	}
	return nil
}

// lockCatalogue locks every cell of every recipe and stack. A fault of one recipe
// keeps no other from being locked.
func lockCatalogue(c *cli.Context, cat catalogue.Catalogue, out printer) error {
	m, err := readMoves(c)
	if err != nil {
		return err
	}
	results := []lockResult{}
	var faults []error
	for _, r := range cat.Recipes {
		o, err := readOptions(c, r)
		if err != nil {
			return err
		}
		o.filter = matrix.Everything(r)
		result, err := lockRecipe(c.Context, cat, o, m, out)
		faults = append(faults, err)
		if result.Recipe == "" {
			continue
		}
		results = append(results, result)
		if o.json {
			continue
		}
		if !m.none {
			out.say("%s, %d cells", r.Name, len(result.Cells))
		}
		result.print(out)
	}
	if c.Bool("json") {
		faults = append(faults, printJSON(out, results))
	}
	return errors.Join(faults...)
}

// lockRecipe compares or moves the lock of one recipe.
func lockRecipe(ctx context.Context, cat catalogue.Catalogue, o options, m moves, out printer) (lockResult, error) {
	if m.none {
		return checkLock(ctx, cat, o, m, out)
	}
	return moveLock(ctx, cat, o, m, out)
}

func lockFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(),
		allFlag("leave every axis open that is not named; without RECIPE: every recipe"),
		&cli.BoolFlag{Name: "check", Usage: "only compare: exit 3 if the lock was edited, or lacks something that the cells need"},
		&cli.BoolFlag{Name: "update", Usage: "resolve every name again, not only what is missing"},
		&cli.StringSliceFlag{Name: "upgrade", Usage: "resolve again what pins `NAME`: a source, an image, a package of an image, a Python package; repeatable"},
		&cli.BoolFlag{Name: "prune", Usage: "drop what no cell of the recipe needs any more"},
	)
}

// moves says which pins a command is to move.
type moves struct {
	none    bool     // only compare
	every   bool     // --all: what no file states is no fault
	all     bool     // every pin of the chosen cells
	holding []string // those that pin one of the names
	prune   bool     // and those that no cell needs go
}

func readMoves(c *cli.Context) (moves, error) {
	m := moves{c.Bool("check"), c.Bool("all"), c.Bool("update"), c.StringSlice("upgrade"), c.Bool("prune")}
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
func checkLock(ctx context.Context, cat catalogue.Catalogue, o options, m moves, out printer) (lockResult, error) {
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return lockResult{}, err
	}
	asm := assembler(cat, o)
	f, err := asm.Locks.Read(o.recipe.Name)
	if err != nil {
		return lockResult{}, err
	}
	result := lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: []lock.PinChange{}, checked: true}
	if m.every {
		err = result.cover(ctx, asm, drafts)
	} else {
		_, err = asm.Pinned(o.recipe.Name, o.filter, drafts, f)
	}
	if err != nil {
		return lockResult{}, err
	}
	left, err := unneeded(cat, o, drafts)
	switch {
	case err != nil:
		out.note("cannot say whether the lock pins what no cell needs: %v", err)
	case !left.None():
		result.Unneeded = left.String()
		out.note("no cell needs any more what the lock of %s pins: %s; `%s --prune` drops it", o.recipe.Name, left, cat.PinCommand(o.recipe.Name, nil))
	}
	return result, nil
}

// cover notes the cells that only a registry can lock. What else is not locked is a
// fault.
func (r *lockResult) cover(ctx context.Context, asm *assemble.Assembler, drafts []lock.Draft) error {
	c, err := asm.Cover(ctx, r.Recipe, drafts)
	if err == nil && len(c.Lacks) > 0 {
		err = diag.Errorf(diag.Drift, "the lock of %s lacks %s", r.Recipe, strings.Join(c.Lacks, "; ")).
			WithHint("run `%s --all`", asm.Locks.PinCommand(r.Recipe, nil))
	}
	r.Unstated = c.Unstated
	return err
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
	// Unstated is what keeps cells from being locked, and is no fault of the lock.
	Unstated []assemble.Unstated `json:"unstated,omitempty"`
	Wrote    string              `json:"wrote,omitempty"` // path of the lock, if it was written
	checked  bool                // nothing was to be moved
}

func cellIDs(drafts []lock.Draft) []string {
	ids := make([]string, len(drafts))
	for i, d := range drafts {
		ids[i] = d.Cell.ID
	}
	return ids
}

// moveLock resolves what is missing and what is to move, and writes the lock. Where
// something cannot be resolved the rest is written all the same.
func moveLock(ctx context.Context, cat catalogue.Catalogue, o options, m moves, out printer) (lockResult, error) {
	if o.locked || o.offline {
		return lockResult{}, diag.Errorf(diag.Usage, "lock resolves names: --locked and --offline forbid just that")
	}
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
	if err != nil {
		return lockResult{}, err
	}
	asked, err := m.questions(cat, o, drafts)
	if err != nil {
		return lockResult{}, err
	}
	var u catalogue.Update
	if m.prune {
		all, err := everyCell(cat, o)
		if err != nil {
			return lockResult{}, err
		}
		u.Drop = func(own lock.File) lock.File { return own.Unneeded(all) }
	}
	w, err := openWorkspace(ctx, o, out.note)
	if err != nil {
		return lockResult{}, err
	}
	defer w.close()
	pins, unresolved := w.resolver().Resolve(ctx, o.recipe.Name, asked)
	if unresolved != nil && pins.None() {
		return lockResult{}, unresolved
	}
	u.Pins, u.Replace = pins, m.all && unresolved == nil
	done, err := cat.Locks(o.home).Update(o.recipe.Name, u)
	if err != nil {
		return lockResult{}, errors.Join(unresolved, err)
	}
	if done.Edited {
		out.note("%s was edited by hand: none of its pins is kept", done.Path)
	}
	result := lockResult{Recipe: o.recipe.Name, Cells: cellIDs(drafts), Changes: lock.Compare(done.Before, done.After)}
	if done.Wrote {
		result.Wrote = done.Path
	}
	return result, unresolved
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

func (r lockResult) print(out printer) {
	if r.checked {
		r.printCheck(out)
		return
	}
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

// printCheck says for which cells everything is pinned, and what the others need.
func (r lockResult) printCheck(out printer) {
	cells := fmt.Sprintf("%d cells", len(r.Cells))
	if len(r.Cells) == 1 {
		cells = r.Cells[0]
	}
	if len(r.Unstated) == 0 {
		out.say("the lock of %s pins everything for %s", r.Recipe, cells)
		return
	}
	out.say("the lock of %s pins everything for all of %s but those that need", r.Recipe, cells)
	for _, u := range r.Unstated {
		out.say("  %s (%d)", u.Why, u.Cells)
	}
}

// dash stands in a table where there is nothing.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
