package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"builder/internal/catalogue"
	"builder/internal/diag"
	"builder/internal/doctor"
	"builder/internal/host"
	"builder/internal/matrix"
	"builder/internal/native"
	"builder/internal/needs"
	"builder/internal/recipe"
	"builder/internal/store"
	"builder/internal/term"
	"builder/pipelines"
)

const doctorDescription = `Looks at the engine and what it needs, memory and disk, GPUs and their
drivers, RDMA, topology, and libraries that are here already. Nothing is
changed or started, and without --recipe nobody is asked over the network.

ok, warn and fail say what was seen; unknown, that it could not be looked at,
and why; none, that it is not there and nothing asks for it. Exit 9 if
something fails that the chosen work needs: the engine's needs, and with
--recipe those of the cell that the recipe prefers. docs/doctor.md says what
each check looks at.`

func doctorFlags() []cli.Flag {
	return []cli.Flag{
		recipesFlag(),
		jsonFlag(),
		&cli.StringFlag{Name: "recipe", Usage: "look for what the cell that recipe `NAME` prefers needs, too"},
		&cli.StringSliceFlag{Name: "engine", EnvVars: []string{"BUILDER_ENGINE"}, Usage: "look at the Dagger engine at `URL`"},
		noInstallFlag(),
	}
}

func doctorCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "say what this host has and lacks for building and running", Description: doctorDescription,
		OnUsageError: usageError, HideHelpCommand: true, Flags: doctorFlags(),
		Action: func(c *cli.Context) error {
			if err := unexpected(c, 0); err != nil {
				return err
			}
			work, err := readWork(c, cat, fault)
			if err != nil {
				return err
			}
			report := doctor.Examine(c.Context, host.This(), work)
			report.Builder = version
			if err := printReport(out, report, c.Bool("json")); err != nil {
				return err
			}
			return lacking(report)
		},
	}
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

// readWork says what the host is examined for.
func readWork(c *cli.Context, cat catalogue.Catalogue, fault error) (doctor.Work, error) {
	o, err := readPlaces(c)
	if err != nil {
		return doctor.Work{}, err
	}
	if o.engines, err = readEngines(c, 1); err != nil {
		return doctor.Work{}, err
	}
	w := doctor.Work{Home: o.home, Engine: engineState(c.Context, o)}
	if !c.IsSet("recipe") {
		return w, nil
	}
	if fault != nil {
		return w, fault
	}
	if o.recipe, err = recipe.Find(cat.Recipes, c.String("recipe")); err != nil {
		return w, err
	}
	o.filter, o.offline = matrix.Filter{}, true
	w.Recipe, err = needs.Of(c.Context, assembler(cat, o), o.recipe, o.filter, store.Peek(filepath.Join(o.home, "store")))
	if err != nil {
		return w, err
	}
	w.Recipe.Mirrors = o.mirrors
	if w.Engine.Kind == doctor.Native && !w.Engine.Built {
		w.Recipe.Places = append(w.Recipe.Places, needs.Modules(c.Context)...)
	}
	return w, nil
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
	} else if program := containerDaemon(ctx); program != "" {
		state.Kind, state.Program = doctor.Container, program
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
