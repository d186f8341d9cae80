package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/audit"
	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/matrix"
	"builder/internal/patch"
	"builder/internal/recipe"
	"builder/internal/store"
	"builder/internal/term"
)

func patchCommand(cat catalogue, fault error, out printer) *cli.Command {
	verb := func(name, usage, description string, do func(context.Context, []*recipe.Recipe, bool) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "[RECIPE…]", Description: description,
			Flags: []cli.Flag{recipesFlag(), jsonFlag()}, OnUsageError: usageError, HideHelpCommand: true,
			Action: func(c *cli.Context) error {
				if fault != nil {
					return fault
				}
				rs, err := patched(cat, c.Args().Slice())
				if err != nil {
					return err
				}
				return do(c.Context, rs, c.Bool("json"))
			},
		}
	}
	return &cli.Command{
		Name: "patch", Usage: "what the patches of a recipe do, and whether they are still needed",
		OnUsageError: usageError, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			verb("show", "list the patches with their reasons and conditions", "", func(_ context.Context, rs []*recipe.Recipe, asJSON bool) error {
				return showPatches(cat, rs, out, asJSON)
			}),
			verb("audit", "apply every patch over the whole matrix and judge the catalogue",
				"Fails on a patch that no cell gets, that upstream has merged, that does not\napply or applies twice, that depends on a fact nobody states, or that edits the\nlines of another; and prints the range that a patch should have. A patch is\napplied for real where the store holds the source of the version (`builder run`\nor `builder lock` bring it); elsewhere the audit says \"not measured\".",
				func(ctx context.Context, rs []*recipe.Recipe, asJSON bool) error {
					return auditPatches(ctx, cat, rs, out, asJSON)
				}),
		},
	}
}

// patched returns the recipes that were named, or all that have patches.
func patched(cat catalogue, names []string) ([]*recipe.Recipe, error) {
	var rs []*recipe.Recipe
	var faults []error
	for _, name := range names {
		r, err := recipe.Find(cat.recipes, name)
		faults = append(faults, err)
		rs = append(rs, r)
	}
	if len(names) == 0 {
		for _, r := range cat.recipes {
			if len(cat.patches[r.Name]) > 0 {
				rs = append(rs, r)
			}
		}
	}
	return rs, errors.Join(faults...)
}

func showPatches(cat catalogue, rs []*recipe.Recipe, out printer, asJSON bool) error {
	all := map[string][]patch.Patch{}
	for _, r := range rs {
		all[r.Name] = cat.patches[r.Name]
	}
	if asJSON {
		return printJSON(out, all)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, p := range all[name] {
			out.say("%s/%s", name, p.Name)
			out.say("  %-9s%s", "reason", p.Reason)
			out.say("  %-9s%s", "when", pairs(p.When))
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
func auditPatches(ctx context.Context, cat catalogue, rs []*recipe.Recipe, out printer, asJSON bool) error {
	home, err := homeDir()
	if err != nil {
		return err
	}
	reports := map[string]audit.Report{}
	var faults []error
	for _, r := range rs {
		report, err := auditRecipe(ctx, cat, home, r)
		if err != nil {
			return err
		}
		reports[r.Name] = report
		for _, f := range report.Findings {
			faults = append(faults, diag.Errorf(diag.Patch, "%s/%s", r.Name, f).WithHint("%s", f.Remedy))
		}
	}
	if asJSON {
		return errors.Join(append(faults, printJSON(out, reports))...)
	}
	for _, r := range rs {
		printAudit(out, r.Name, reports[r.Name])
	}
	return errors.Join(faults...)
}

// auditRecipe audits the patches of one recipe over every cell of its matrix.
func auditRecipe(ctx context.Context, cat catalogue, home string, r *recipe.Recipe) (audit.Report, error) {
	filter := matrix.Filter{}
	for _, name := range r.AxisNames() {
		filter[name] = "all"
	}
	cells, _, err := matrix.Expand(r, filter)
	if err != nil {
		return audit.Report{}, err
	}
	pins, err := cat.readLock(home, r.Name)
	if err != nil {
		return audit.Report{}, err
	}
	var audited []audit.Cell
	for _, cell := range cells {
		facts, err := lock.Facts(cell, cat.lockInputs())
		if err != nil {
			return audit.Report{}, err
		}
		c := audit.Cell{ID: cell.ID, Version: facts["version"], Facts: facts}
		if pin, ok := pins.SourceOf(cell, facts); ok {
			c.Source = pin.SHA256
		}
		audited = append(audited, c)
	}
	open, err := openSources(home, cat.patches[r.Name])
	if err != nil {
		return audit.Report{}, err
	}
	return audit.Run(ctx, cat.patches[r.Name], audited, open)
}

// openSources reads the trees of sources that the store holds, each once.
func openSources(home string, patches []patch.Patch) (audit.Open, error) {
	s, err := store.Open(filepath.Join(home, "store"))
	if err != nil {
		return nil, err
	}
	wanted := audit.Files(patches)
	trees := map[string]*audit.Tree{}
	return func(source string) (*audit.Tree, error) {
		tree, known := trees[source]
		if !known {
			if path, ok := s.Path(store.Blob{Name: "source", SHA256: source}); ok {
				if tree, err = audit.Read(path, func(name string) bool { return wanted[name] }); err != nil {
					return nil, err
				}
			}
			trees[source] = tree
		}
		if tree == nil {
			return nil, nil
		}
		return tree.Clone(), nil
	}, nil
}

func printAudit(out printer, name string, report audit.Report) {
	versions := map[string]bool{}
	for _, row := range report.Rows {
		for v := range row.States {
			versions[v] = true
		}
	}
	header := append([]string{name, "cells"}, slices.Sorted(maps.Keys(versions))...)
	var rows [][]string
	for _, row := range report.Rows {
		cells := []string{row.Patch, fmt.Sprintf("%d of %d", row.Cells, row.Of)}
		for _, v := range header[2:] {
			cells = append(cells, strings.TrimSpace(cmp.Or(string(row.States[v]), "-")))
		}
		rows = append(rows, cells)
	}
	term.Table(out.stdout, term.Width(out.stdout), header, rows)
}
