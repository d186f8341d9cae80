package main

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/cmd/builder/show"
	"builder/internal/app/plan"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

func listCommand(cat catalogue.Catalogue, err error, out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the recipes and the values of their axes", ArgsUsage: "[RECIPE…]",
		Flags: []cli.Flag{recipesFlag(), jsonFlag()},
		Action: func(c *cli.Context) error {
			if err != nil {
				return err
			}
			recipes, err := named(cat.Recipes, c.Args().Slice())
			if err != nil {
				return err
			}
			if c.Bool("json") {
				return out.JSON(recipes)
			}
			for _, r := range recipes {
				out.Say("%s: %s\n", r.Name, term.OneLine(r.Summary))
				var rows [][]string
				for _, a := range r.Axes {
					rows = append(rows, []string{"--" + a.Name, strings.Join(a.Values, ", "), a.About})
				}
				out.Table([]string{"axis", "values, most preferred first", "about"}, rows)
				for _, s := range r.Selectors {
					out.Say("\n--%s: %s", s.Name, s.About)
					var rows [][]string
					for _, v := range s.Values {
						rows = append(rows, []string{v.Value, v.Axes.String()})
					}
					out.Table([]string{s.Name, "chooses"}, rows)
				}
				var stale map[string]string
				if c.Args().Present() {
					in, err := readInvocation(c, cat, out)
					if err != nil {
						return err
					}
					if stale, err = plan.Stale(c.Context, in.plan(), r); err != nil {
						return err
					}
				}
				if err := show.Proven(out, cat, r, stale); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// named returns the recipes with the given names, or all recipes if names is empty.
func named(all []*recipe.Recipe, names []string) ([]*recipe.Recipe, error) {
	if len(names) == 0 {
		return all, nil
	}
	var found []*recipe.Recipe
	var errs []error
	for _, name := range names {
		r, err := recipe.Find(all, name)
		found, errs = append(found, r), append(errs, err)
	}
	return found, errors.Join(errs...)
}
