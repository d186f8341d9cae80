package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/recipe"
	versions "builder/internal/plan/version"
	"builder/internal/publishing/publish"
)

func recipesFlag() cli.Flag {
	return &cli.StringFlag{Name: "recipes", EnvVars: []string{"BUILDER_RECIPES"}, Usage: "add the recipes, images, patches, diagnoses and profiles below `DIR`, which replace built-in ones of the same name"}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print the result as JSON on stdout"}
}

func noInstallFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-install", EnvVars: []string{"BUILDER_NO_INSTALL"}, Usage: "never install host packages"}
}

func offlineFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "offline", EnvVars: []string{"BUILDER_OFFLINE"}, Usage: usage}
}

// selectionFlags are the flags that choose cells and the sources of their inputs.
func selectionFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(), jsonFlag(),
		&cli.BoolFlag{Name: "locked", EnvVars: []string{"BUILDER_LOCKED"}, Usage: "resolve no name: exit 3 if the lock lacks a pin"},
		offlineFlag("use the store only, not the network"),
		setFlag(),
	}
}

// unprovenFlag chooses what no recorded build has proven.
func unprovenFlag() cli.Flag {
	return &cli.BoolFlag{Name: "unproven", Usage: "choose a few cells that hold the values, of axes without a flag too, that no recorded cell of today's inputs holds"}
}

// outFlag names the output directory of a run.
func outFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "out", Aliases: []string{"o"}, EnvVars: []string{"BUILDER_OUT"}, Value: "out", Usage: usage}
}

func runFlags() []cli.Flag {
	return append(slices.Concat(engineFlags(), fromFlags(), signFlags()),
		unprovenFlag(),
		outFlag("write results below `DIR`"),
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, EnvVars: []string{"BUILDER_JOBS"}, Value: 1, Usage: "build `N` cells at a time"},
		&cli.DurationFlag{Name: "step-limit", EnvVars: []string{"BUILDER_STEP_LIMIT"}, Value: 12 * time.Hour, Usage: "stop a step that takes longer than `TIME`; 0: never"},
		&cli.BoolFlag{Name: "rebuild", Usage: "build every passed cell a second time and compare the bytes (gate reproducible)"},
		&cli.StringFlag{Name: "tests", EnvVars: []string{"BUILDER_TESTS"}, Value: levels[0], Usage: "run upstream's own tests, `none|quick|full`: quick means those of patched code, full takes minutes"},
		&cli.BoolFlag{Name: "ccache", EnvVars: []string{"BUILDER_CCACHE"}, Usage: "reuse objects of earlier attempts at the same cell; publish then needs a second build without it"},
		&cli.StringSliceFlag{Name: "accept", EnvVars: []string{"BUILDER_ACCEPT"}, Usage: "build the cells of `RECIPE,…` that --recipes brings or changes; all: of every recipe"},
		&cli.BoolFlag{Name: "fail-fast", EnvVars: []string{"BUILDER_FAIL_FAST"}, Usage: "start no further cell after the first failure"},
		progressFlag(),
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print the logs of the steps too"},
	)
}

func fromFlags() []cli.Flag {
	return []cli.Flag{
		trustFlag(),
		&cli.StringSliceFlag{Name: "from", EnvVars: []string{"BUILDER_FROM"}, Usage: "download a cell published at `PLACE` (" + publish.Syntax[publish.Source]() + ") instead of building it, if a trusted key signed it; repeatable"},
		&cli.BoolFlag{Name: "from-only", EnvVars: []string{"BUILDER_FROM_ONLY"}, Usage: "build nothing: a cell missing at --from is an error"},
	}
}

// knownNames returns the names that the files of a site are checked against. No axis can
// have the name of a flag that every recipe has below some verb.
func knownNames() catalogue.Names {
	recipes := flagNames(slices.Concat(selectionFlags(), runFlags(), planFlags(), lockFlags(), matrixFlags(), exportFlags(), doctorFlags()))
	return catalogue.Names{Recipe: append(recipes, "help", "h"), Profile: append(flagNames(profileFlags()), "help", "h"), Gates: gate.Promises()}
}

// axisFlags returns one flag for each axis of a recipe or a profile.
func axisFlags(axes []recipe.Axis) []cli.Flag {
	var flags []cli.Flag
	for _, axis := range axes {
		flags = append(flags, &cli.GenericFlag{
			Name: axis.Name, Category: "Axes (an exact value; a list a,b; a constraint '>=6.0,<6.3'; all)",
			Value: &axisValue{known: axis.Values},
			Usage: axis.About + ": `VALUE` of " + choices(axis.Values),
		})
	}
	return flags
}

// choices lists the values of an axis and marks the preferred one, which is the first.
func choices(values []string) string {
	sorted := versions.Ascending(values)
	if i := slices.Index(sorted, values[0]); len(values) > 1 {
		sorted[i] += " (preferred)"
	}
	return strings.Join(sorted, ", ")
}

// axisValue is the value of an axis on the command line. A repeated flag is a list:
// --rocm 5.7 --rocm 6.1 is --rocm 5.7,6.1.
type axisValue struct {
	known []string // possible values, for completion
	texts []string
}

// Set implements [cli.Generic]. All comparisons must hold, so a comparison together
// with a further value is rejected.
func (v *axisValue) Set(text string) error {
	if strings.HasPrefix(text, "--") {
		return errors.New("it is a flag, and a value is missing before it")
	}
	v.texts = append(v.texts, text)
	if len(v.texts) > 1 && strings.ContainsAny(v.String(), "<>=!~") {
		return errors.New("the flag occurs twice, and a list cannot have a comparison: give one flag, such as 5.7,6.1 or '>=5.7,<6.2'")
	}
	return nil
}

// String implements [cli.Generic].
func (v *axisValue) String() string { return strings.Join(v.texts, ",") }

// axisOf returns the axis of a flag, and whether it has one.
func axisOf(f cli.Flag) (*axisValue, bool) {
	g, ok := f.(*cli.GenericFlag)
	if !ok {
		return nil, false
	}
	axis, ok := g.Value.(*axisValue)
	return axis, ok
}

// recipeCommands returns a command for each recipe. Its action gets the chosen cells. err,
// that of loading the catalogue, is the error of each command.
func recipeCommands(cat catalogue.Catalogue, err error, flags []cli.Flag, action func(*cli.Context, plan.Selection) error) []*cli.Command {
	do := func(c *cli.Context) error {
		if err != nil {
			return err
		}
		of, err := selected(c, cat)
		if err != nil {
			return err
		}
		return action(c, of)
	}
	var commands []*cli.Command
	for _, r := range cat.Recipes {
		own := axisFlags(r.Axes)
		for _, s := range r.Selectors {
			own = append(own, &cli.GenericFlag{
				Name: s.Name, Category: "Releases that choose axes",
				Value: &axisValue{known: s.Names()},
				Usage: s.About + ": `RELEASE` of " + strings.Join(versions.Ascending(s.Names()), ", "),
			})
		}
		commands = append(commands, &cli.Command{Name: r.Name, Usage: r.Summary, Action: do, Flags: slices.Concat(flags, own)})
	}
	return commands
}

// selected returns the cells that the command of a recipe chooses.
func selected(c *cli.Context, cat catalogue.Catalogue) (of plan.Selection, err error) {
	if c.Args().Present() {
		return of, diag.Errorf(diag.Usage, "unexpected argument %q", c.Args().First()).WithHint("axes are flags: --NAME VALUE")
	}
	r, err := recipe.Find(cat.Recipes, c.Command.Name)
	if err != nil {
		return of, err
	}
	var selectors []string
	for _, s := range r.Selectors {
		selectors = append(selectors, s.Name)
	}
	of, err = plan.Select(r, readValues(c, r.AxisNames()), readValues(c, selectors))
	if c.Bool("unproven") {
		of = of.Covering()
	}
	return of, err
}

// unknownRecipe is the action of a verb with no recipe or an unknown one.
func unknownRecipe(cat catalogue.Catalogue, err error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err != nil {
			return err
		}
		if !c.Args().Present() {
			return diag.Errorf(diag.Usage, "%s: name a recipe", c.Command.HelpName).
				WithHint("known: %s", strings.Join(cat.Names(), ", "))
		}
		word := c.Args().First()
		_, err := recipe.Find(cat.Recipes, word)
		if e, ok := errors.AsType[*diag.Error](err); ok && cat.Site == "" && strings.HasPrefix(e.Hint, "known:") {
			return e.WithHint("%s; for a recipe of your own, add --recipes DIR", e.Hint)
		}
		return err
	}
}

// readValues reads those flags of axes or selectors that the command line has.
func readValues(c *cli.Context, names []string) map[string]string {
	given := map[string]string{}
	for _, name := range names {
		if c.IsSet(name) {
			given[name] = c.Generic(name).(fmt.Stringer).String()
		}
	}
	return given
}

func setFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "set", Usage: "fetch the same digest from another place: `source.NAME=PATH|URL`"}
}

func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// siteDir finds the value of --recipes before the flags are parsed, because the
// commands and flags depend on it.
func siteDir(args []string) string {
	site := os.Getenv("BUILDER_RECIPES")
	for i, arg := range args {
		flag, value, assigned := strings.Cut(arg, "=")
		switch {
		case flag != "--recipes" && flag != "-recipes":
		case assigned:
			site = value
		case i+1 < len(args):
			site = args[i+1]
		}
	}
	return site
}
