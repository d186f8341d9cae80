package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/app/config"
	"builder/internal/base/diag"
	"builder/internal/build/native"
	"builder/internal/machine/host"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	versions "builder/internal/plan/version"
	"builder/internal/publishing/publish"
	"builder/pipelines"
)

func recipesFlag() cli.Flag {
	return &cli.StringFlag{Name: "recipes", EnvVars: []string{"BUILDER_RECIPES"}, Usage: "add the recipes, stacks, images, patches, diagnoses and profiles below `DIR`, which replace built-in ones of the same name"}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print the result as JSON on stdout"}
}

func noInstallFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-install", EnvVars: []string{"BUILDER_NO_INSTALL"}, Usage: "never install host packages"}
}

func idleFlag() cli.Flag {
	return &cli.DurationFlag{Name: "engine-idle", EnvVars: []string{"BUILDER_ENGINE_IDLE"}, Value: native.DefaultIdle, Usage: "stop the native engine after `TIME` without a client; -1s: never"}
}

func cacheFlag() cli.Flag {
	return &cli.StringFlag{
		Name: app.CacheFlag, EnvVars: []string{config.Variable(app.CacheFlag)}, Value: "60%",
		Usage: "limit the cache of an engine started by builder to `SIZE`, such as 40GB, or a share of the disk",
		Action: func(_ *cli.Context, text string) error {
			if text == "" { // the variable may be set but empty
				return nil
			}
			if _, err := recipe.ParseShare(text, 0); err != nil {
				return diag.Errorf(diag.Usage, "--%s: %w", app.CacheFlag, err)
			}
			return nil
		},
	}
}

func imageFlag() cli.Flag {
	return &cli.StringFlag{
		Name: app.ImageFlag, EnvVars: []string{config.Variable(app.ImageFlag)},
		Usage: "copy the engine from `PLACE@sha256:DIGEST` and do not compile it; PLACE is a URL or a path of a file written by builder engine image",
	}
}

// cacheBytes returns the size limit of an engine's cache, also for verbs without the
// flag: verbs with different limits would restart each other's engine.
func cacheBytes(c *cli.Context, home string) int64 {
	disk, _, err := host.Disk(home)
	if err != nil {
		return 0 // the engine chooses by its own disk
	}
	text := cmp.Or(c.String(app.CacheFlag), os.Getenv(config.Variable(app.CacheFlag)), cacheFlag().(*cli.StringFlag).Value)
	bytes, _ := recipe.ParseShare(text, disk) // the flag's action reports the error
	return bytes
}

// nativeOptions returns the options of the native engine. Other homes copy the engine's
// programs from the default home, if they exist there.
func nativeOptions(c *cli.Context, home string) native.Options {
	from, _ := app.DefaultHome()
	return native.Options{NoInstall: c.Bool("no-install"), Idle: c.Duration("engine-idle"), From: from, Cache: cacheBytes(c, home)}
}

// selectionFlags are the flags that choose cells and the sources of their inputs.
func selectionFlags() []cli.Flag {
	return append([]cli.Flag{recipesFlag(), jsonFlag()}, sourceFlags{}.flags()...)
}

// outFlag names the output directory of a run.
func outFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "out", EnvVars: []string{"BUILDER_OUT"}, Value: "out", Usage: usage}
}

func runFlags() []cli.Flag {
	return append(slices.Concat(engineGroup{}.flags(), fromFlags(), signFlags()),
		outFlag("write results below `DIR`"),
		&cli.IntFlag{Name: "jobs", EnvVars: []string{"BUILDER_JOBS"}, Value: 1, Usage: "build `N` cells at a time on each engine"},
		&cli.StringFlag{Name: "memory", EnvVars: []string{"BUILDER_MEMORY"}, Usage: "limit the memory of concurrent builds on each engine to `SIZE`, such as 64GB; the default is this host's memory if the engine runs here"},
		&cli.DurationFlag{Name: "step-limit", EnvVars: []string{"BUILDER_STEP_LIMIT"}, Value: 12 * time.Hour, Usage: "stop a step that takes longer than `TIME`; 0: never"},
		&cli.DurationFlag{Name: "engine-patience", EnvVars: []string{"BUILDER_ENGINE_PATIENCE"}, Value: pipelines.Patience, Usage: "give up an engine after `TIME` without a response"},
		&cli.BoolFlag{Name: "rebuild", Usage: "build every passed cell a second time and compare the bytes (gate reproducible)"},
		&cli.StringFlag{Name: "tests", EnvVars: []string{"BUILDER_TESTS"}, Value: levels[0], Usage: "run upstream's own tests: `HOW` is none, quick for tests of patched code, or full for all of them, which takes minutes"},
		&cli.BoolFlag{Name: "ccache", EnvVars: []string{"BUILDER_CCACHE"}, Usage: "reuse objects of earlier attempts at the same cell; publish then needs a second build without it"},
		&cli.BoolFlag{Name: "fail-fast", EnvVars: []string{"BUILDER_FAIL_FAST"}, Usage: "start no further cell after the first failure"},
		progressFlag(), verboseFlag(),
	)
}

func fromFlags() []cli.Flag {
	return []cli.Flag{
		trustFlag(),
		&cli.StringSliceFlag{Name: "from", EnvVars: []string{"BUILDER_FROM"}, Usage: "download a cell published at `PLACE` (" + publish.Sources + ") instead of building it, if a trusted key signed it; repeatable"},
		&cli.BoolFlag{Name: "from-only", EnvVars: []string{"BUILDER_FROM_ONLY"}, Usage: "build nothing: a cell missing at --from is an error"},
	}
}

// recipeFlagNames returns the flags that every recipe has below some verb: no axis can
// have such a name.
func recipeFlagNames() []string {
	return flagNames(slices.Concat(selectionFlags(), runFlags(), planFlags(), lockFlags(), matrixFlags(), exportFlags(), doctorFlags()))
}

// takenNames returns the flag names that no axis can have.
func takenNames() catalogue.Taken {
	return catalogue.Taken{Recipe: append(recipeFlagNames(), "help", "h"), Profile: append(flagNames(profileFlags()), "help", "h")}
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

// selectorFlags returns one flag for each selector of a recipe.
func selectorFlags(all []recipe.Selector) []cli.Flag {
	var flags []cli.Flag
	for _, s := range all {
		names := s.Names()
		flags = append(flags, &cli.GenericFlag{
			Name: s.Name, Category: "Releases that choose axes",
			Value: &axisValue{known: names},
			Usage: s.About + ": `RELEASE` of " + strings.Join(versions.Ascending(names), ", "),
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
	v.texts = append(v.texts, text)
	if len(v.texts) > 1 && strings.ContainsAny(v.String(), "<>=!~") {
		return errors.New("the flag occurs twice, and a list cannot have a comparison: give one flag, such as 5.7,6.1 or '>=5.7,<6.2'")
	}
	return nil
}

// String implements [cli.Generic].
func (v *axisValue) String() string { return strings.Join(v.texts, ",") }

// recipeCommands returns a command for each recipe.
func recipeCommands(cat catalogue.Catalogue, err error, flags []cli.Flag, do func(*cli.Context, app.Selection) error) []*cli.Command {
	var commands []*cli.Command
	for _, r := range cat.Recipes {
		commands = append(commands, &cli.Command{
			Name: r.Name, Usage: r.Summary, OnUsageError: axisUsageError(r, flags), HideHelpCommand: true,
			Flags: slices.Concat(flags, axisFlags(r.Axes), selectorFlags(r.Selectors)),
			Action: func(c *cli.Context) error {
				if err != nil {
					return err
				}
				if word := c.Args().First(); word != c.Command.Name && slices.Contains(cat.Names(), word) {
					return diag.Errorf(diag.Usage, "unexpected second recipe %q", word).
						WithHint("give one recipe at a time: %s, then %s %s", c.Command.HelpName, strings.TrimSuffix(c.Command.HelpName, " "+c.Command.Name), word)
				}
				if c.Args().Present() {
					return diag.Errorf(diag.Usage, "unexpected argument %q", c.Args().First()).
						WithHint("axes are flags: --NAME VALUE")
				}
				of, err := app.Select(r, readAxes(c, r.Axes), readSelectors(c, r.Selectors))
				if err != nil {
					return err
				}
				return do(c, of)
			},
		})
	}
	return commands
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
		if e, ok := errors.AsType[*diag.Error](err); ok && slices.Contains(flagNames(c.Command.Flags), word) {
			return e.WithHint("did you mean --%s? write it after the recipe: %s RECIPE --%s", word, c.Command.HelpName, word)
		} else if ok && cat.Site == "" && strings.HasPrefix(e.Hint, "known:") {
			return e.WithHint("%s; for a recipe of your own, add --recipes DIR", e.Hint)
		}
		return err
	}
}

// axisUsageError suggests the axis or flag that a mistyped one may stand for.
func axisUsageError(r *recipe.Recipe, flags []cli.Flag) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, sub bool) error {
		name, ok := undefinedFlag(err)
		if !ok {
			return usageError(c, err, sub)
		}
		e := diag.Errorf(diag.Usage, "recipe %s has no axis or flag --%s", r.Name, name)
		if hint, ok := flagsElsewhere[name]; ok {
			return e.WithHint("%s", hint)
		}
		return e.WithHint("%s", diag.DidYouMean(name, slices.Concat(r.AxisNames(), flagNames(selectorFlags(r.Selectors)), flagNames(flags))))
	}
}

// verbUsageError explains that flags come after the recipe: each recipe has its own.
func verbUsageError(c *cli.Context, err error, sub bool) error {
	name, ok := undefinedFlag(err)
	if !ok {
		return usageError(c, err, sub)
	}
	if hint, known := flagsElsewhere[name]; known {
		return diag.Errorf(diag.Usage, "the recipe is missing before --%s", name).WithHint("name a recipe: %s RECIPE; %s", c.Command.HelpName, hint)
	}
	return diag.Errorf(diag.Usage, "the recipe is missing before --%s", name).
		WithHint("write axes and flags after the recipe: %s RECIPE --%s", c.Command.HelpName, name)
}

// undefinedFlag returns the name of a flag unknown to the parser.
func undefinedFlag(err error) (string, bool) {
	name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	return strings.TrimPrefix(name, "-"), ok
}

func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}

// readAxes reads the axes of the command line.
func readAxes(c *cli.Context, axes []recipe.Axis) matrix.Filter {
	filter := matrix.Filter{}
	for _, axis := range axes {
		if c.IsSet(axis.Name) {
			filter[axis.Name] = c.Generic(axis.Name).(fmt.Stringer).String()
		}
	}
	return filter
}

// readSelectors reads the selectors of the command line.
func readSelectors(c *cli.Context, all []recipe.Selector) map[string]string {
	given := map[string]string{}
	for _, s := range all {
		if c.IsSet(s.Name) {
			given[s.Name] = c.Generic(s.Name).(fmt.Stringer).String()
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

// axisWithoutRecipe explains the place of axes for a verb whose recipe is optional.
func axisWithoutRecipe(cat catalogue.Catalogue) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, sub bool) error {
		name, _ := undefinedFlag(err)
		for _, r := range cat.Recipes {
			if slices.Contains(r.AxisNames(), name) {
				return verbUsageError(c, err, sub)
			}
		}
		return usageError(c, err, sub)
	}
}
