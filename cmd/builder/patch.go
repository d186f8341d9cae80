package main

import (
	"errors"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

func patchCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	verb := func(c cli.Command, do func(*cli.Context, []*recipe.Recipe) error) *cli.Command {
		c.ArgsUsage = "[RECIPE…]"
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
		Subcommands: []*cli.Command{
			verb(cli.Command{
				Name: "show", Usage: "list the patches with their reasons and conditions",
				Flags: []cli.Flag{&cli.StringFlag{Name: "as-diff", Usage: "print the patch `NAME` as a unified diff for upstream"}},
			}, func(c *cli.Context, rs []*recipe.Recipe) error {
				if name := c.String("as-diff"); name != "" {
					in, err := readInvocation(c, cat, out)
					if err != nil {
						return err
					}
					text, err := plan.PatchAsDiff(c.Context, in.plan(), rs, name)
					_, err2 := io.WriteString(out.Stdout, text)
					return errors.Join(err, err2)
				}
				return show.Patches(out, cat, rs, c.Bool("json"))
			}),
			verb(cli.Command{
				Name: "audit", Usage: "apply every patch over the whole matrix and report faults",
				Description: auditDescription,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "fetch", Usage: "fetch the locked sources that the store lacks"}, setFlag(), noInstallFlag(),
				},
			}, func(c *cli.Context, rs []*recipe.Recipe) error {
				in, err := readInvocation(c, cat, out)
				if err != nil {
					return err
				}
				return auditPatches(c, in.plan(), rs, out)
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
	rs, err := named(cat.Recipes, names)
	if len(names) > 0 {
		return rs, err
	}
	return slices.DeleteFunc(slices.Clone(rs), func(r *recipe.Recipe) bool { return len(cat.Patches[r.Name]) == 0 }), nil
}

// auditPatches prints the report of each recipe and returns its findings.
func auditPatches(c *cli.Context, s plan.Setup, rs []*recipe.Recipe, out term.Printer) error {
	reports, err := plan.Audit(c.Context, s, rs, c.Bool("fetch"))
	if reports == nil {
		return err
	}
	return errors.Join(err, out.Print(c.Bool("json"), reports, func() {
		for _, r := range rs {
			show.Audit(out, r, reports[r.Name])
		}
	}))
}
