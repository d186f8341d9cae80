package main

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/build/native"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
)

func listCommand(cat catalogue.Catalogue, err error, out printer) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the recipes and the values of their axes", ArgsUsage: "[RECIPE…]", OnUsageError: usageError,
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
				return printJSON(out, recipes)
			}
			home, err := app.HomeDir()
			if err != nil {
				out.note("cannot find the locked cells: %v", err)
			}
			asm := (&app.Session{Home: home, Catalogue: cat}).Assembler()
			for _, r := range recipes {
				out.say("%s: %s\n", r.Name, term.OneLine(r.Summary))
				var rows [][]string
				for _, a := range r.Axes {
					rows = append(rows, []string{"--" + a.Name, strings.Join(a.Values, ", "), a.About})
				}
				out.table([]string{"axis", "values, most preferred first", "about"}, rows)
				for _, s := range r.Selectors {
					out.say("\n--%s: %s", s.Name, s.About)
					var rows [][]string
					for _, v := range s.Values {
						rows = append(rows, []string{v.Value, v.Axes.String()})
					}
					out.table([]string{s.Name, "chooses"}, rows)
				}
				if err == nil {
					sayLocked(c.Context, out, asm, r)
				}
				if err := sayProven(out, cat, r, c.Args().Present()); err != nil {
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

// sayLocked prints the number of locked cells of a recipe and the needs of the others.
func sayLocked(ctx context.Context, out printer, asm *assemble.Assembler, r *recipe.Recipe) {
	c, err := asm.CoverAll(ctx, r)
	if err != nil {
		out.note("cannot find the locked cells of %s: %v", r.Name, err)
		return
	}
	out.say("\nlocked: %d of %d cells", c.Locked, c.Cells)
	for _, u := range c.Unstated {
		out.say("  %d need %s: `%s --all`", u.Cells, u.Why, asm.Locks.PinCommand(r.Name, nil))
	}
	if len(c.Lacks) > 0 {
		out.say("  pin the others with `%s --all`", asm.Locks.PinCommand(r.Name, nil))
	}
}

// sayProven prints the number of built and gated cells of a recipe, the day of the last
// build, and with each also the cells.
func sayProven(out printer, cat catalogue.Catalogue, r *recipe.Recipe, each bool) error {
	built, last, err := app.ProvenCells(cat, r)
	if err != nil {
		return err
	}
	if len(built) == 0 {
		out.say("proven: no build of a cell is recorded yet\n")
		return nil
	}
	out.say("proven: %d cells were built and gated, the last on %s", len(built), last)
	for _, id := range built {
		if each {
			out.say("  %s", id)
		}
	}
	out.say("")
	return nil
}

func versionCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version of the tool and of its engine", OnUsageError: usageError,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 0); err != nil {
				return err
			}
			v := struct {
				Builder  string `json:"builder"`
				Revision string `json:"revision,omitempty"`
				Engine   string `json:"engine"`
				Go       string `json:"go"`
			}{Builder: version, Engine: native.Version}
			if info, ok := debug.ReadBuildInfo(); ok {
				v.Go = info.GoVersion
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			if c.Bool("json") {
				return printJSON(out, v)
			}
			out.say("%s\nengine %s\n%s", strings.TrimSpace("builder "+v.Builder+" "+v.Revision), v.Engine, v.Go)
			return nil
		},
	}
}

func printJSON(out printer, v any) error {
	return term.JSON(out.stdout, v, "  ")
}
