package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/app/catalogue"
	"builder/internal/app/doctor"
	"builder/internal/app/needs"
	"builder/internal/base/diag"
	"builder/internal/build/daemon"
	"builder/internal/build/native"
	"builder/internal/input/store"
	"builder/internal/machine/host"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/view/term"
	"builder/pipelines"
)

const doctorDescription = `Looks at the engine and what it needs, memory and disk, GPUs and their
drivers, RDMA, topology, and libraries that are here already. Nothing is
changed or started, and without a recipe nobody is asked over the network.

ok, warn and fail say what was seen; unknown, that it could not be looked at,
and why; none, that it is not there and nothing asks for it. Exit 9 if
something fails that the chosen work needs: the engine's needs, and with a
recipe those of the first cell that it has for these axes. docs/doctor.md says
what each check looks at.`

func doctorFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		jsonFlag(),
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "look at the Dagger engine at `URL`"},
		noInstallFlag(),
	}
}

func doctorCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "say what this host has and lacks for building and running", ArgsUsage: "[RECIPE [axes]]", Description: doctorDescription,
		OnUsageError: axisWithoutRecipe(cat), HideHelpCommand: true,
		Flags: append(doctorFlags(), &cli.StringFlag{Name: "recipe", Usage: "look for what the cell that recipe `NAME` prefers needs, too: as doctor NAME"}),
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			if err := unexpected(c, 1); err != nil {
				return err
			}
			if name == "" {
				name = c.String("recipe")
			}
			o, err := readPlaces(c)
			if err != nil {
				return err
			}
			if o.engines, err = readEngines(c, 1); err != nil {
				return err
			}
			if name != "" {
				if fault != nil {
					return fault
				}
				if o.recipe, err = recipe.Find(cat.Recipes, name); err != nil {
					return err
				}
			}
			o.filter = matrix.Filter{}
			return examineHost(c, cat, o, out)
		},
		Subcommands: recipeCommands(cat, fault, doctorFlags(), func(c *cli.Context, o options) error {
			for _, name := range c.Lineage()[1].LocalFlagNames() {
				if os.Getenv("BUILDER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) == "" { // which sets a flag too
					return diag.Errorf(diag.Usage, "--%s stands before the recipe, where nobody reads it", name).
						WithHint("flags come after the recipe: %s --%s", c.Command.HelpName, name)
				}
			}
			return examineHost(c, cat, o, out)
		}),
	}
}

// examineHost prints what this host has and lacks for the work that options describe.
func examineHost(c *cli.Context, cat catalogue.Catalogue, o options, out printer) error {
	work, err := workOf(c.Context, cat, o)
	if err != nil {
		return err
	}
	report := doctor.Examine(c.Context, host.This(), work)
	report.Builder = version
	if err := printReport(out, report, c.Bool("json")); err != nil {
		return err
	}
	return lacking(report)
}

// lacking is the error for a host that cannot do the work.
func lacking(r doctor.Report) error {
	names := r.Lacking()
	if len(names) == 0 {
		return nil
	}
	return diag.Errorf(diag.NoEngine, "this host cannot do the work: %s", strings.Join(names, ", ")).
		WithHint("what the checks found stands above, with what to do")
}

// workOf says what the host is examined for.
func workOf(ctx context.Context, cat catalogue.Catalogue, o options) (doctor.Work, error) {
	w := doctor.Work{Home: o.home, Engine: engineState(ctx, o)}
	if o.recipe == nil {
		return w, nil
	}
	o.offline = true
	var err error
	w.Recipe, err = needs.Of(ctx, assembler(cat, o), o.recipe, o.filter, store.Peek(filepath.Join(o.home, "store")), heldBy(w.Engine, o))
	if err != nil {
		return w, err
	}
	w.Recipe.Mirrors = o.mirrors
	if w.Engine.Kind == doctor.Native && !w.Engine.Built {
		w.Recipe.Places = append(w.Recipe.Places, needs.Modules(ctx)...)
	}
	if w.Engine.Kind == doctor.Container && !w.Engine.Holds && w.Engine.Image != "" {
		err = needs.AddImage(w.Recipe, w.Engine.Image)
	}
	return w, err
}

// engineTime bounds the question for the version of an engine.
const engineTime = 20 * time.Second

// engineState finds the engine that a run would take, and starts none.
func engineState(ctx context.Context, o options) doctor.EngineState {
	own := native.New(o.home, func(string, ...any) {}, o.native).Look()
	state := doctor.EngineState{
		Kind: doctor.Native, Wanted: native.Version, NoInstall: o.native.NoInstall,
		Addresses: []string{own.Address}, Built: own.Built, Running: own.Running, Current: own.Current,
	}
	if o.engines[0].address != "" {
		state.Kind, state.Addresses = doctor.Named, addressesOf(o.engines)
	} else if d, found := daemon.Find(ctx); found && !o.engines[0].native {
		state.Kind, state.Program = doctor.Container, string(d)
		state.Image, state.Holds = heldImage(ctx, d)
	}
	if own.Built && (state.Kind == doctor.Named || state.Kind == doctor.Native && state.Current) {
		state.Version = func(ctx context.Context, address string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, engineTime)
			defer cancel()
			return pipelines.Version(ctx, address, own.CLI)
		}
	}
	return state
}

// heldImage returns the engine's image that a daemon holds, or the one that it would
// have to pull.
func heldImage(ctx context.Context, d daemon.Daemon) (image string, holds bool) {
	for _, image := range []string{native.ImageName, native.UpstreamImage} {
		if d.Has(ctx, image) {
			return image, true
		}
	}
	return native.UpstreamImage, false
}

// printReport prints a table by purpose, what more there is to say, and what to
// do.
func printReport(out printer, r doctor.Report, asJSON bool) error {
	if asJSON {
		return printJSON(out, r)
	}
	width := term.Width(out.stdout)
	var rows [][]string
	last := doctor.Purpose("")
	for _, c := range r.Checks {
		purpose := ""
		if c.For != last {
			purpose, last = string(c.For), c.For
		}
		rows = append(rows, []string{purpose, c.Name, c.Verdict.String(), c.Found})
	}
	term.Table(out.stdout, width, []string{"for", "check", "verdict", "found"}, rows)
	for _, c := range r.Checks {
		if len(c.Detail) == 0 {
			continue
		}
		out.say("\n%s", c.Name)
		for _, line := range c.Detail {
			term.Indented(out.stdout, width, line)
		}
	}
	printRemedies(out, width, r)
	return nil
}

func printRemedies(out printer, width int, r doctor.Report) {
	said := false
	for _, c := range r.Checks {
		if c.Remedy == "" {
			continue
		}
		if !said {
			out.say("\nwhat to do")
			said = true
		}
		term.Labelled(out.stdout, width, c.Name, c.Remedy)
	}
}
