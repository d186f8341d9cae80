package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"builder/internal/app/home"
	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/linux"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/plan/assemble"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/proven"
	"builder/pipelines"
)

// A Plan describes what run would do.
type Plan struct {
	Recipe   string             `json:"recipe"`
	Cells    []PlannedCell      `json:"cells"`
	Excluded []matrix.Exclusion `json:"excluded"`
}

// A PlannedCell describes what run would do for one cell.
type PlannedCell struct {
	ID      string            `json:"id"`
	Key     string            `json:"key,omitempty"` // empty while the lock lacks a pin
	Axes    map[string]string `json:"axes"`
	Chosen  []string          `json:"chosen"`       // axes whose value comes from a preference
	By      []Through         `json:"by,omitempty"` // selectors that chose values
	Forced  []matrix.Forced   `json:"forced"`       // values neither requested nor preferred: a rule leaves no other
	Site    []string          `json:"site"`         // parts from a site, and whether they replace built-in ones
	Image   string            `json:"image"`
	Runtime string            `json:"runtime"`
	CPython string            `json:"cpython,omitempty"` // release laid into both images
	// ImageFrom and RuntimeFrom are the references of registry images, with digests.
	ImageFrom   string   `json:"image-from,omitempty"`
	RuntimeFrom string   `json:"runtime-from,omitempty"`
	Source      string   `json:"source"`
	From        string   `json:"from"` // the kind of the source, and its repository or path
	Python      []string `json:"python"`
	Inputs      []string `json:"inputs,omitempty"` // ids of its input cells
	// Unproven lists those of the inputs that were never built.
	Unproven []string          `json:"unproven-inputs,omitempty"`
	Patches  []PlannedPatch    `json:"patches"`
	Env      map[string]string `json:"env"`
	Steps    []string          `json:"steps"`
	Gates    []string          `json:"gates"`
	// OnGPUs lists the gates that builder gate runs on a host with GPUs, for stable.
	OnGPUs  []string        `json:"gpu-gates,omitempty"`
	Systems *PlannedSystems `json:"systems,omitempty"` // nil if the recipe promises no glibc
	Tests   *PlannedTests   `json:"tests,omitempty"`   // upstream's tests, if the recipe names any
	Stable  string          `json:"stable,omitempty"`  // why the cell cannot reach the channel stable
	Missing string          `json:"missing,omitempty"` // pins missing from the lock
	// Unstated lists missing pins that no file or index states: a registry or
	// repository must be queried. Each has the reason and the command to run.
	Unstated []string        `json:"unstated,omitempty"`
	Proven   proven.Standing `json:"proven"` // whether the cell was ever built, and its record
	Known    bool            `json:"known"`  // the result is in the store
	// Took is how long the build and the gates of that result took in seconds.
	Took float64 `json:"took-seconds,omitempty"`
}

// A PlannedPatch says whether a cell gets a patch.
type PlannedPatch struct {
	Name    string      `json:"name"`
	Applies bool        `json:"applies"`
	State   patch.State `json:"state"` // not measured if it applies: no source tree was read
	Because string      `json:"because"`
}

// PlannedSystems says where the artifact loads, by the glibc that the recipe promises.
type PlannedSystems struct {
	Glibc string   `json:"glibc"`
	Load  []string `json:"load"`
	Old   []string `json:"too-old"`
	Also  string   `json:"also,omitempty"` // what a node needs beside it
}

func systemsOf(glibc, also string) *PlannedSystems {
	if glibc == "" {
		return nil
	}
	load, old := linux.Split(glibc)
	return &PlannedSystems{glibc, notNil(load), notNil(old), also}
}

// PlannedTests gives the duration of upstream's tests at each level.
type PlannedTests struct {
	Source string `json:"source"`
	Quick  int    `json:"quick-seconds"`
	Full   int    `json:"full-seconds"`
}

func testsOf(d lock.Draft) *PlannedTests {
	t := d.Settings.Expect.Tests
	if len(t.Files) == 0 {
		return nil
	}
	return &PlannedTests{d.Tests.Project + " " + d.Tests.Version, t.QuickSeconds(), t.QuickSeconds() + t.FullSeconds()}
}

// Explain explains what run would do. It returns the error with which run would end
// before it builds anything. The plan is empty if nothing can be explained.
func Explain(ctx context.Context, s Setup, r Selection) (Plan, error) {
	p := Plan{Recipe: r.Recipe.Name, Cells: []PlannedCell{}}
	cells, left, err := matrix.Expand(r.Recipe, r.Filter)
	if err != nil {
		return Plan{}, err
	}
	p.Excluded = append([]matrix.Exclusion{}, left...)
	if r.Unproven {
		if cells, err = unproven(ctx, s, r, cells); err != nil {
			return Plan{}, err
		}
	}
	planned, err := explainCells(ctx, s, r, cells)
	if err != nil {
		return Plan{}, err
	}
	p.Cells = append(p.Cells, planned...)
	return p, refusal(ctx, s, r, cells)
}

// refusal returns the error with which run would end before it builds anything: the lock
// lacks a pin and --locked or --offline forbids resolving it, or no locked cell reads a
// source of --set.
func refusal(ctx context.Context, s Setup, of Selection, cells []matrix.Cell) error {
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	if asm.Forbids == "" && len(s.Sources.Overrides) == 0 {
		return nil
	}
	drafts, err := assemble.Draft(s.Catalogue, cells)
	if err != nil {
		return err
	}
	entries, err := asm.Entries(ctx, of.Recipe, of.Filter, drafts)
	if err != nil && asm.Forbids == "" { // run resolves missing pins
		return nil
	}
	if err == nil {
		err = s.Sources.Unused(entries)
	}
	return err
}

// explainCells explains cells in their order.
func explainCells(ctx context.Context, s Setup, r Selection, cells []matrix.Cell) (all []PlannedCell, err error) {
	asm := s.Sources.Assembler(s.Catalogue, s.Keys.Home)
	f, err := asm.Locks.Read(r.Recipe.Name)
	if err != nil {
		return nil, err
	}
	known, err := knownResults(s.Keys)
	if err != nil {
		return nil, err
	}
	done, err := s.Catalogue.Proven()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, c := range cells {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d, err := lock.NewDraft(c, s.Catalogue.LockInputs())
		if err != nil {
			errs = append(errs, err)
		}
		if len(errs) > 0 {
			continue // a recipe with an error has no plan: report all its errors
		}
		missing := f.Missing([]lock.Draft{d})
		cell, err := explainCell(ctx, asm, d, f, missing, known)
		if err != nil {
			return nil, err
		}
		cell.Proven = done.Standing(cell.ID, cell.Key)
		for _, in := range cell.Inputs {
			if _, built := done[in]; !built {
				cell.Unproven = append(cell.Unproven, in)
			}
		}
		for _, why := range missing.Unstated() {
			cell.Unstated = append(cell.Unstated, fmt.Sprintf("%s: `%s`", why, s.Catalogue.PinCommand(r.Recipe.Name, r.Filter)))
		}
		cell.By = r.By
		all = append(all, cell)
	}
	return all, errors.Join(errs...)
}

// knownResults opens the results. It does not create a missing store.
func knownResults(keys signing.Keys) (func(key string) (run.Result, bool), error) {
	dir := home.StoreDir(keys.Home)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return func(string) (run.Result, bool) { return run.Result{}, false }, nil
	}
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	return results.Signed(kept, keys).Known, nil
}

func explainCell(ctx context.Context, asm *assemble.Assembler, d lock.Draft, f lock.File, missing lock.Missing, known func(key string) (run.Result, bool)) (PlannedCell, error) {
	chosen, forced := matrix.Reasons(d.Cell)
	c := PlannedCell{
		Site: asm.Locks.OfSite(d), Stable: attest.Stable.Unreachable(d.Settings.Expect),

		ID: d.Cell.ID, Axes: d.Cell.Axes, Chosen: chosen, Forced: forced,
		Image: d.Image.Name, Runtime: d.Runtime.Name, ImageFrom: d.Image.Reference(), RuntimeFrom: d.Runtime.Reference(),
		Source: d.Source.Project + " " + d.Source.Version, From: d.Source.Where(),
		Python: notNil(d.Settings.Requires.Build), Env: d.Settings.Env,
		Patches: []PlannedPatch{}, Steps: []string{"fetch", "engine"}, Gates: []string{},
	}
	if d.Image.CPython != nil {
		c.CPython = d.Image.CPython.Version
	}
	for _, choice := range d.Patches {
		c.Patches = append(c.Patches, PlannedPatch{choice.Patch.Name, choice.Applies, choice.State, choice.Because})
	}
	c.Steps = append(c.Steps, pipelines.Names()...)
	for _, g := range gate.Wanted(d.Settings.Expect, gate.GPUs) {
		switch {
		case g.Needs <= gate.Container:
			c.Gates = append(c.Gates, g.Name)
		case g.Needs == gate.GPUs:
			c.OnGPUs = append(c.OnGPUs, g.Name)
		}
	}
	c.Tests, c.Systems = testsOf(d), systemsOf(d.Settings.Expect.Glibc, d.Settings.Nodes)
	if !missing.None() {
		c.Missing = missing.String()
		return c, nil
	}
	entries, err := lock.Assemble([]lock.Draft{d}, f, asm.Revision)
	if err != nil {
		return c, err
	}
	inputs, _, err := asm.Inputs(ctx, d)
	if err != nil {
		c.Missing = err.Error()
		return c, nil
	}
	for _, in := range inputs {
		c.Inputs = append(c.Inputs, in.ID)
	}
	entries[0].Inputs = inputs
	c.Key = entries[0].Key()
	found, is := known(c.Key)
	c.Known, c.Took = is, found.Seconds()
	return c, nil
}

// notNil returns an empty list for nil: JSON lists are never null.
func notNil(list []string) []string { return append([]string{}, list...) }
