package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/build"
	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/recipe"
	"builder/internal/view/progress"
	"builder/internal/view/term"
)

func debugCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "debug", Usage: "run the build step of a cell by hand", OnUsageError: usageError, Action: unknownCommand, HideHelpCommand: true,
		Subcommands: []*cli.Command{shellCommand(out)},
	}
}

// debugOptions are the flags of debug shell.
type debugOptions struct {
	invocation
	out  string // the output directory
	cell string // id of a cell in it, or a part of the id
	step string // the step at whose start the cell is reproduced; see [build.StepToDebug]
	to   string // directory to write to; "" is a temporary one
}

func shellCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "shell", Usage: "open a shell before the failed step of a cell from an earlier run", ArgsUsage: "CELL [STEP]", OnUsageError: usageError,
		Description: "The shell stops before STEP: " + strings.Join(build.DebugSteps(), ", ") + ".\nThe default is the step that failed, or build.\n\nThe shell sees the file system before the step: the image, packages and source so far,\nwith the environment of the build step and without a network. Changes are lost when\nthe shell ends, unless --to keeps them. The script DIR/build then runs the build step\nin DIR/rootfs, and DIR/shell opens a shell. Both need only root, unshare and chroot,\nso you can copy DIR to another host.",
		Flags:       shellFlags(),
		Action: func(c *cli.Context) error {
			o, err := readDebugOptions(c, out)
			if err != nil {
				return err
			}
			return openShell(c.Context, o)
		},
	}
}

func shellFlags() []cli.Flag {
	return append([]cli.Flag{
		outFlag("find the cell in the results in `DIR`"),
		&cli.StringFlag{Name: "to", Usage: "keep the file system and a script of the build step in `DIR`, which must not exist"},
		&cli.BoolFlag{Name: "offline", EnvVars: []string{"BUILDER_OFFLINE"}, Usage: "use the store only, not the network"},
		setFlag(),
		progressFlag(),
	}, engineGroup{}.flags()...)
}

func readDebugOptions(c *cli.Context, out term.Printer) (debugOptions, error) {
	in, err := readInvocation(c, catalogue.Catalogue{}, out)
	o := debugOptions{invocation: in, out: c.String("out"), cell: c.Args().First(), step: c.Args().Get(1), to: c.String("to")}
	errs := []error{err, unexpected(c, 2)}
	if o.cell == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: name a cell", c.Command.HelpName).WithHint("list the cells of the run with `builder logs --out %s`", o.out))
	}
	if known := build.DebugSteps(); o.step == "" {
		o.step = build.StepToDebug(o.out, o.cell)
	} else if !slices.Contains(known, o.step) {
		errs = append(errs, diag.Errorf(diag.Usage, "unknown step %q", o.step).WithHint("%s", diag.DidYouMean(o.step, known)))
	}
	if o.to != "" {
		errs = append(errs, home.AbsentPath(o.to))
	}
	return o, errors.Join(errs...)
}

// prepare writes the file system of the cell at the start of the step to dir, and calls
// do with the script of the build step.
func (o debugOptions) prepare(ctx context.Context, dir string, do func(build string) error) error {
	e, err := build.EntryOf(o.out, o.cell)
	if err != nil {
		return err
	}
	// The commands in hints name the site of the recipe.
	o.Catalogue = catalogue.Catalogue{Site: build.SiteOf(o.out, e.ID), Recipes: []*recipe.Recipe{{Name: e.Recipe}}}
	var made build.Rootfs
	err = o.show(ctx, func(*progress.Display) error {
		made, err = build.WriteStepRootfs(ctx, o.Setup, e, o.step, dir)
		return err
	})
	if err != nil {
		return err
	}
	return do(made.Build)
}

// openShell opens a shell in the file system of a cell and waits until it ends. The
// shell's exit code is ignored.
func openShell(ctx context.Context, o debugOptions) (err error) {
	dir := o.to
	if dir == "" {
		if err := os.MkdirAll(filepath.Join(o.Keys.Home, "scratch"), 0o700); err != nil {
			return err
		}
		if dir, err = os.MkdirTemp(filepath.Join(o.Keys.Home, "scratch"), "shell-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	return o.prepare(ctx, dir, func(build string) error {
		o.invocation.out.Note("before step %s of %s; leave with `exit`", o.step, o.cell)
		shell := exec.Command(filepath.Join(filepath.Dir(build), "shell"))                                                       // Ctrl-C belongs to the commands in the shell
		shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, term.Raw(o.invocation.out.Stdout), term.Raw(o.invocation.out.Stderr) // the user controls the terminal directly
		err := shell.Run()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return nil
		}
		return err
	})
}
