package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/input/store"
	"builder/internal/plan/audit"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/internal/plan/sourcetree"
	"builder/internal/view/term"
)

func patchCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	verb := func(c cli.Command, do func(*cli.Context, []*recipe.Recipe) error) *cli.Command {
		c.ArgsUsage, c.OnUsageError, c.HideHelpCommand = "[RECIPE…]", usageError, true
		c.Flags = append([]cli.Flag{recipesFlag(), jsonFlag()}, c.Flags...)
		c.Action = func(c *cli.Context) error {
			if fault != nil {
				return fault
			}
			rs, err := patched(cat, c.Args().Slice())
			if err != nil {
				return err
			}
			return do(c, rs)
		}
		return &c
	}
	return &cli.Command{
		Name: "patch", Usage: "what the patches of a recipe do, and whether they are still needed",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			verb(cli.Command{Name: "show", Usage: "list the patches with their reasons and conditions"},
				func(c *cli.Context, rs []*recipe.Recipe) error { return showPatches(cat, rs, out, c.Bool("json")) }),
			verb(cli.Command{
				Name: "audit", Usage: "apply every patch over the whole matrix and judge the catalogue",
				Description: auditDescription,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "fetch", Usage: "fetch the sources that the lock names and the store lacks"}, setFlag(), noInstallFlag(),
				},
			}, func(c *cli.Context, rs []*recipe.Recipe) error {
				o, err := readPlaces(c)
				if err != nil {
					return err
				}
				o.json = c.Bool("json")
				return auditPatches(c.Context, cat, rs, o, c.Bool("fetch"), out)
			}),
		},
	}
}

const auditDescription = `Fails on a patch that no cell gets, that upstream has merged, that does not
apply or applies twice, that depends on a fact nobody states, or that edits the
lines of another; and prints the range that a patch should have. A patch is
applied for real where the store holds the source of the version; elsewhere the
audit says "not measured", and a patch of which no version was measured fails.`

// patched returns the recipes that were named, or all that have patches.
func patched(cat catalogue.Catalogue, names []string) ([]*recipe.Recipe, error) {
	var rs []*recipe.Recipe
	var faults []error
	for _, name := range names {
		r, err := recipe.Find(cat.Recipes, name)
		faults = append(faults, err)
		rs = append(rs, r)
	}
	if len(names) == 0 {
		for _, r := range cat.Recipes {
			if len(cat.Patches[r.Name]) > 0 {
				rs = append(rs, r)
			}
		}
	}
	return rs, errors.Join(faults...)
}

func showPatches(cat catalogue.Catalogue, rs []*recipe.Recipe, out printer, asJSON bool) error {
	all := map[string][]patch.Patch{}
	for _, r := range rs {
		all[r.Name] = cat.Patches[r.Name]
	}
	if asJSON {
		return printJSON(out, all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			out.say("%s/%s", name, p.Name)
			out.say("  %-9s%s", "reason", p.Reason)
			out.say("  %-9s%s", "when", matrix.Pairs(p.When))
			if p.Merged != "" {
				out.say("  %-9sin %s", "merged", p.Merged)
			}
			out.say("  %-9s%s", "upstream", p.Upstream)
			for _, e := range p.Edits {
				out.say("  %-9s%s", e.Kind, cmp.Or(e.File, e.Link, e.Diff))
			}
			out.say("")
		}
	}
	return nil
}

// auditPatches prints the report of each recipe and returns its findings.
func auditPatches(ctx context.Context, cat catalogue.Catalogue, rs []*recipe.Recipe, o options, fetch bool, out printer) error {
	w, err := openWorkspace(ctx, o, out.note)
	if err != nil {
		return err
	}
	defer w.close()
	reports := map[string]audit.Report{}
	var faults []error
	for _, r := range rs {
		report, err := w.audit(ctx, cat, r, fetch)
		if err != nil {
			return err
		}
		reports[r.Name] = report
		for _, f := range report.Findings {
			faults = append(faults, diag.Errorf(diag.Patch, "%s/%s", r.Name, f).WithHint("%s", f.Remedy))
		}
		for _, row := range report.Rows {
			if row.Unseen() {
				faults = append(faults, diag.Errorf(diag.Patch, "%s/%s: not measured: the source of none of its versions is here", r.Name, row.Patch).
					WithHint("--fetch brings the sources"))
			}
		}
	}
	if o.json {
		return errors.Join(append(faults, printJSON(out, reports))...)
	}
	for _, r := range rs {
		printAudit(out, r, reports[r.Name])
	}
	return errors.Join(faults...)
}

// audit audits the patches of one recipe over every cell of its matrix.
func (w *workspace) audit(ctx context.Context, cat catalogue.Catalogue, r *recipe.Recipe, fetch bool) (audit.Report, error) {
	cells, _, err := matrix.Expand(r, matrix.Everything(r))
	if err != nil {
		return audit.Report{}, err
	}
	pins, err := cat.Locks(w.home).Read(r.Name)
	if err != nil {
		return audit.Report{}, err
	}
	var audited []audit.Cell
	fetched := map[string]bool{} // many cells share a source
	for _, cell := range cells {
		facts, err := lock.Facts(cell, cat.LockInputs())
		if err != nil {
			return audit.Report{}, err
		}
		c := audit.Cell{ID: cell.ID, Version: facts["version"], Facts: facts}
		if pin, ok := pins.SourceOf(cell, facts); ok {
			c.Source = pin.SHA256
			if fetch && !fetched[pin.SHA256] {
				fetched[pin.SHA256] = true
				if err := w.fetcher().Fetch(ctx, lock.Entry{Source: pin}, io.Discard); err != nil {
					return audit.Report{}, err
				}
			}
		}
		audited = append(audited, c)
	}
	return audit.Run(ctx, cat.Patches[r.Name], audited, openSources(w.store, cat.Patches[r.Name]))
}

// openSources reads the trees of sources that the store holds, each once.
func openSources(s *store.Store, patches []patch.Patch) audit.Open {
	wanted := sourcetree.Files(patches)
	trees := map[string]*sourcetree.Tree{}
	return func(source string) (*sourcetree.Tree, error) {
		tree, known := trees[source]
		if !known {
			if path, ok := s.Path(store.Blob{Name: "source", SHA256: source}); ok {
				var err error
				if tree, err = sourcetree.Read(path, func(name string) bool { return wanted[name] }); err != nil {
					return nil, err
				}
			}
			trees[source] = tree
		}
		if tree == nil {
			return nil, nil
		}
		return tree.Clone(), nil
	}
}

// printAudit prints, for each patch, how many cells get it and what it does to
// the versions, those of the catalogue in order.
func printAudit(out printer, r *recipe.Recipe, report audit.Report) {
	versions, _ := r.Axis("version")
	var rows [][]string
	for _, row := range report.Rows {
		name, cells := row.Patch, fmt.Sprintf("%d of %d", row.Cells, row.Of)
		for _, state := range patch.States() {
			in := slices.DeleteFunc(slices.Clone(versions.Values), func(v string) bool { return row.States[v] != state })
			if len(in) == 0 {
				continue
			}
			rows = append(rows, []string{name, cells, string(state), strings.Join(in, " ")})
			name, cells = "", ""
		}
	}
	term.Table(out.stdout, term.Width(out.stdout), []string{r.Name, "cells", "state", "versions"}, rows)
}
