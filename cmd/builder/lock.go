package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/ci"
	"builder/internal/plan/matrix"
	"builder/internal/view/term"
)

func lockCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "lock", Usage: "resolve names to digests and write the lock", ArgsUsage: "[RECIPE] [axes]",
		Description: "Only this command and a run without --locked resolve names. With `--recipes DIR` the\nlock is DIR/recipes/RECIPE.lock.json, which overrides the built-in one. In a checkout\nof the recipes, `--recipes .` writes the lock beside the recipe.\n\nRECIPE alone means its preferred cell, RECIPE --all every cell of it, and --all without\nRECIPE every cell of every recipe. If a registry is unreachable, the command still\nwrites all other pins. --all --check exits with 0 if the unlocked cells lack only\npins that a registry or a repository has to provide.\n\n--locked and --offline work only with --check: without it the command has to resolve\nnames and ends with exit code 2.",
		Flags:       lockFlags(),
		Action: func(c *cli.Context) error {
			if err != nil || c.Args().Present() || !c.Bool("all") {
				return unknownRecipe(cat, err)(c)
			}
			return lockCatalogue(c, cat, out)
		},
		Subcommands: recipeCommands(cat, err, lockFlags(), func(c *cli.Context, of plan.Selection) error {
			in, err := readInvocation(c, cat, out)
			r, err2 := readLock(c)
			if err = errors.Join(err, err2); err != nil {
				return err
			}
			if r.Selection = of; r.Every {
				r.Filter = ci.OpenAxes(of.Recipe, of.Filter, true)
			}
			result, err := plan.Lock(c.Context, in.plan(), r)
			return printResult(c, out, result, err, show.Lock)
		}),
	}
}

// lockCatalogue locks every cell of every recipe. An error in one recipe does not stop the
// others.
func lockCatalogue(c *cli.Context, cat catalogue.Catalogue, out term.Printer) error {
	r, err := readLock(c)
	if err != nil {
		return err
	}
	in, err := readInvocation(c, cat, out)
	if err != nil {
		return err
	}
	results := []plan.LockResult{}
	var errs []error
	for _, of := range cat.Recipes {
		r.Selection = plan.Selection{Recipe: of, Filter: matrix.Everything(of)}
		result, err := plan.Lock(c.Context, in.plan(), r)
		errs = append(errs, err)
		if result.Recipe == "" {
			continue
		}
		results = append(results, result)
		if c.Bool("json") {
			continue
		}
		if !r.Check {
			out.Say("%s, %d cells", of.Name, len(result.Cells))
		}
		show.Lock(out, result)
	}
	if c.Bool("json") {
		errs = append(errs, out.JSON(results))
	}
	return errors.Join(errs...)
}

func lockFlags() []cli.Flag {
	return append(selectionFlags(), noInstallFlag(),
		allFlag("select every value of the axes without a flag; without RECIPE: every recipe"),
		&cli.BoolFlag{Name: "check", Usage: "write nothing: exit 3 if the lock was edited or lacks a pin of the cells"},
		&cli.StringSliceFlag{Name: "update", Usage: "resolve `NAME|all` again: a source, an image, a package of an image, a Python package; repeatable"},
		&cli.BoolFlag{Name: "prune", Usage: "remove pins that no cell of the recipe needs"},
	)
}

func readLock(c *cli.Context) (plan.LockRequest, error) {
	r := plan.LockRequest{Check: c.Bool("check"), Every: c.Bool("all"), Upgrade: c.StringSlice("update"), Prune: c.Bool("prune")}
	if r.Check && (r.Prune || len(r.Upgrade) > 0) {
		return r, diag.Errorf(diag.Usage, "--check excludes --update and --prune, which write: give one of them")
	}
	if slices.Contains(r.Upgrade, "all") {
		r.Update, r.Upgrade = true, nil
	}
	return r, nil
}
