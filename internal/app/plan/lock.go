package plan

import (
	"context"
	"errors"
	"slices"
	"strings"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
)

// A LockRequest names the cells whose lock to compare or update, and the pins to
// update.
type LockRequest struct {
	Selection
	Check   bool     // compare only
	Every   bool     // all cells were requested: unstated digests are no error
	Update  bool     // update every pin of the chosen cells
	Upgrade []string // update the pins of these names
	Prune   bool     // drop unneeded pins
}

// Lock compares or updates the lock of one recipe. The result is empty if it did
// neither.
func Lock(ctx context.Context, s Setup, r LockRequest) (LockResult, error) {
	if r.Check {
		return checkLock(ctx, s, r)
	}
	return updateLock(ctx, s, r)
}

// checkLock compares the lock with the needs of the chosen cells. Pins unneeded by all
// cells of the recipe cause a note, not an error.
func checkLock(ctx context.Context, s Setup, r LockRequest) (LockResult, error) {
	drafts, err := r.drafts(s.Catalogue)
	if err != nil {
		return LockResult{}, err
	}
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	f, err := asm.Locks.Read(r.Recipe.Name)
	if err != nil {
		return LockResult{}, err
	}
	result := LockResult{Recipe: r.Recipe.Name, Cells: cellIDs(drafts), Changes: []lock.PinChange{}, Checked: true}
	if r.Every {
		err = result.cover(ctx, asm, f, drafts)
	} else {
		_, err = lock.Assemble(drafts, f, asm.Revision)
		err = asm.HintPins(err, r.Recipe.Name, r.Filter)
	}
	if err != nil {
		return LockResult{}, err
	}
	left, err := unneededPins(s, r.Selection)
	switch {
	case err != nil:
		s.Keys.Note("cannot check the lock for unused pins: %v", err)
	case !left.None():
		result.Unneeded = left.String()
		prune := s.Catalogue.PinCommand(r.Recipe.Name, nil) + " --prune"
		if s.Sources.Locked {
			prune += " --locked=false"
		}
		s.Keys.Note("the lock of %s has unused pins: %s; remove them with `%s`", r.Recipe.Name, left, prune)
	}
	return result, nil
}

// cover notes the needs for which a registry or a repository must be asked. It returns an
// error for all other missing pins of the cells and of their input cells.
func (r *LockResult) cover(ctx context.Context, asm *assemble.Assembler, f lock.File, drafts []lock.Draft) error {
	missing := f.Missing(drafts)
	r.Unstated = missing.Unstated()
	var lacks []string
	if left := missing.Else(); !left.None() {
		lacks = append(lacks, left.String())
	}
	for _, d := range drafts {
		switch _, _, err := asm.Inputs(ctx, d); {
		case err != nil && diag.CodeOf(err) != diag.Drift:
			return err
		case err != nil && !slices.Contains(lacks, err.Error()):
			lacks = append(lacks, err.Error())
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return diag.Errorf(diag.Drift, "the lock of %s lacks %s", r.Recipe, strings.Join(lacks, "; ")).
		WithHint("run `%s --all`", asm.Locks.PinCommand(r.Recipe, nil))
}

// unneededPins returns the pins at the lock path not needed by any cell of the recipe.
func unneededPins(s Setup, r Selection) (lock.File, error) {
	own, err := s.Catalogue.Locks(s.Keys.Home).Own(r.Recipe.Name)
	if err != nil {
		return own, err
	}
	all, err := r.everyCell(s.Catalogue)
	return own.Unneeded(all), err
}

// everyCell drafts all cells of a recipe, not only the chosen ones, and the recorded cells
// with options: without their pins the record would be stale.
func (of Selection) everyCell(cat catalogue.Catalogue) ([]lock.Draft, error) {
	cells, _, err1 := matrix.Expand(of.Recipe, matrix.Everything(of.Recipe))
	others, _, err2 := matrix.Expand(of.Recipe, matrix.WithOptions(of.Recipe))
	done, err3 := cat.Proven()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	for _, c := range others {
		same := func(o matrix.Cell) bool { return o.ID == c.ID }
		if done.Standing(c.ID, "").Built && !slices.ContainsFunc(cells, same) {
			cells = append(cells, c)
		}
	}
	return assemble.Draft(cat, cells)
}

// drafts drafts the chosen cells.
func (of Selection) drafts(cat catalogue.Catalogue) ([]lock.Draft, error) {
	return assemble.Choose(cat, of.Recipe, of.Filter)
}

// A LockResult describes the changes to the lock of a recipe.
type LockResult struct {
	Recipe   string           `json:"recipe"`
	Cells    []string         `json:"cells"`
	Changes  []lock.PinChange `json:"changes"`
	Unneeded string           `json:"unneeded,omitempty"` // pins not needed by any cell of the recipe
	// Unstated lists the reasons why cells cannot be locked. They are no error of the
	// lock.
	Unstated []string `json:"unstated,omitempty"`
	Wrote    string   `json:"wrote,omitempty"` // path of the lock, if it was written
	Checked  bool     `json:"-"`               // --check: no update was requested
}

func cellIDs(drafts []lock.Draft) []string {
	ids := make([]string, len(drafts))
	for i, d := range drafts {
		ids[i] = d.Cell.ID
	}
	return ids
}

// updateLock resolves missing pins and the pins to update, and writes the lock. If some
// cannot be resolved it still writes the rest.
func updateLock(ctx context.Context, s Setup, r LockRequest) (LockResult, error) {
	if s.Sources.forbids() != "" {
		return LockResult{}, diag.Errorf(diag.Usage, "lock resolves names, which --locked and --offline forbid").
			WithHint("add --locked=false --offline=false if a variable sets them; --check compares without resolving")
	}
	drafts, err := r.drafts(s.Catalogue)
	if err != nil {
		return LockResult{}, err
	}
	asked, err := questions(s, r, drafts)
	if err != nil {
		return LockResult{}, err
	}
	var u catalogue.Update
	if r.Prune {
		all, err := r.everyCell(s.Catalogue)
		if err != nil {
			return LockResult{}, err
		}
		u.Drop = func(own lock.File) lock.File { return own.Unneeded(all) }
	}
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return LockResult{}, err
	}
	defer w.Close()
	pins, unresolved := s.Sources.Resolver(w).Resolve(ctx, r.Recipe.Name, asked)
	if unresolved != nil && pins.None() {
		return LockResult{}, unresolved
	}
	u.Pins, u.Replace = pins, r.Update && unresolved == nil
	done, err := s.Catalogue.Locks(s.Keys.Home).Update(r.Recipe.Name, u)
	if err != nil {
		return LockResult{}, errors.Join(unresolved, err)
	}
	if done.Edited {
		s.Keys.Note("%s was edited by hand: all its pins are resolved again", done.Path)
	}
	result := LockResult{Recipe: r.Recipe.Name, Cells: cellIDs(drafts), Changes: lock.Compare(done.Before, done.After)}
	if done.Wrote {
		result.Wrote = done.Path
	}
	return result, unresolved
}

// questions returns the names to resolve. With --update it returns every name and reads
// no pin, because a lock edited by hand must be replaceable.
func questions(s Setup, r LockRequest, drafts []lock.Draft) (lock.Missing, error) {
	f, err := s.Catalogue.Locks(s.Keys.Home).Read(r.Recipe.Name)
	if r.Update && (err == nil || errors.Is(err, lock.ErrEdited)) {
		return lock.File{}.Missing(drafts), nil
	}
	if err != nil {
		return lock.Missing{}, err
	}
	held, err := f.Holding(r.Upgrade, drafts)
	return f.Missing(drafts).And(held), err
}
