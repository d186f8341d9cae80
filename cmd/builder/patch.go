package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/plan/audit"
	"builder/internal/plan/matrix"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
)

func patchCommand(cat catalogue.Catalogue, err error, out printer) *cli.Command {
	verb := func(c cli.Command, do func(*cli.Context, []*recipe.Recipe) error) *cli.Command {
		c.ArgsUsage, c.OnUsageError, c.HideHelpCommand = "[RECIPE…]", usageError, true
		c.Flags = append([]cli.Flag{recipesFlag(), jsonFlag()}, c.Flags...)
		c.Action = func(c *cli.Context) error {
			if err != nil {
				return err
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
		Name: "patch", Usage: "list the patches of a recipe, and check whether they are still needed",
		OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{
			verb(cli.Command{
				Name: "show", Usage: "list the patches with their reasons and conditions",
				Flags: []cli.Flag{&cli.StringFlag{Name: "as-diff", Usage: "print the patch `NAME` as a unified diff for upstream"}},
			}, func(c *cli.Context, rs []*recipe.Recipe) error {
				if name := c.String("as-diff"); name != "" {
					in, err := openSession(c, cat, out)
					if err != nil {
						return err
					}
					text, err := app.PatchAsDiff(c.Context, in.Session, rs, name)
					_, err2 := io.WriteString(out.stdout, text)
					return errors.Join(err, err2)
				}
				return showPatches(cat, rs, out, c.Bool("json"))
			}),
			verb(cli.Command{
				Name: "audit", Usage: "apply every patch over the whole matrix and report faults",
				Description: auditDescription,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "fetch", Usage: "fetch the locked sources that the store lacks"}, setFlag(), noInstallFlag(),
				},
			}, func(c *cli.Context, rs []*recipe.Recipe) error {
				in, err := openSession(c, cat, out)
				if err != nil {
					return err
				}
				return auditPatches(c, in.Session, rs, out)
			}),
		},
	}
}

const auditDescription = `Fails on a patch that no cell uses, that upstream has merged, that does not
apply or applies twice, that depends on an undefined fact, or that needs text
that another patch has changed. If a patch fails on some versions of its range,
it prints the range that the patch should have. "not needed" means that the
conditions exclude every cell of a version, so the patch is not tried there. The
audit applies a patch to every version with a source in the store, and prints
"not measured" for the others. A patch without a measured version fails.`

// patched returns the named recipes, or all recipes with patches.
func patched(cat catalogue.Catalogue, names []string) ([]*recipe.Recipe, error) {
	var rs []*recipe.Recipe
	var errs []error
	for _, name := range names {
		r, err := recipe.Find(cat.Recipes, name)
		errs = append(errs, err)
		rs = append(rs, r)
	}
	if len(names) == 0 {
		for _, r := range cat.Recipes {
			if len(cat.Patches[r.Name]) > 0 {
				rs = append(rs, r)
			}
		}
	}
	return rs, errors.Join(errs...)
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
func auditPatches(c *cli.Context, s *app.Session, rs []*recipe.Recipe, out printer) error {
	reports, err := app.Audit(c.Context, s, rs, c.Bool("fetch"))
	if reports == nil {
		return err
	}
	return errors.Join(err, out.print(c.Bool("json"), reports, func() {
		for _, r := range rs {
			printAudit(out, r, reports[r.Name])
		}
	}))
}

// printAudit prints for each patch the number of its cells and its effect on the
// versions, in the order of the catalogue.
func printAudit(out printer, r *recipe.Recipe, report audit.Report) {
	if len(report.Rows) == 0 {
		out.say("%s has no patches", r.Name)
		return
	}
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
	out.table([]string{r.Name, "cells", "state", "versions"}, rows)
}
