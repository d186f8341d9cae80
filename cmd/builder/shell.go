package main

import (
	"cmp"
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
	"builder/internal/view/term"
)

func debugCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "debug", Usage: "run the build step of a cell by hand",
		Subcommands: []*cli.Command{shellCommand(out)},
	}
}

func shellCommand(out term.Printer) *cli.Command {
	return &cli.Command{
		Name: "shell", Usage: "open a shell before the failed step of a cell from an earlier run", ArgsUsage: "CELL [STEP]",
		Description: "The shell stops before STEP: " + strings.Join(build.DebugSteps(), ", ") + ".\nThe default is the step that failed, or build.\n\nThe shell sees the file system before the step: the image, packages and source so far,\nwith the environment of the build step and without a network. Changes are lost when\nthe shell ends, unless --to keeps them. The script DIR/build then runs the build step\nin DIR/rootfs, and DIR/shell opens a shell. Both need only root, unshare and chroot,\nso you can copy DIR to another host.",
		Flags: append([]cli.Flag{
			outFlag("find the cell in the results in `DIR`"),
			&cli.StringFlag{Name: "to", Usage: "keep the file system and a script of the build step in `DIR`, which must not exist"},
			offlineFlag("use the store only, not the network"),
			setFlag(),
			progressFlag(),
		}, engineFlags()...),
		Action: func(c *cli.Context) error {
			in, err := readInvocation(c, catalogue.Catalogue{}, out)
			cell, step, err2 := readShell(c)
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			return openShell(c, in, cell, step)
		},
	}
}

// readShell reads the cell in the output directory, by its id or a part of it, and the
// step at whose start it is reproduced, "" for the one that failed.
func readShell(c *cli.Context) (cell, step string, err error) {
	out, to := c.String("out"), c.String("to")
	cell, step = c.Args().First(), c.Args().Get(1)
	errs := []error{unexpected(c, 2)}
	if cell == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "%s: name a cell", c.Command.HelpName).WithHint("its directory is below %s", out))
	}
	if known := build.DebugSteps(); step != "" && !slices.Contains(known, step) {
		errs = append(errs, diag.Errorf(diag.Usage, "unknown step %q", step).WithHint("%s", diag.DidYouMean(step, known)))
	}
	if to != "" {
		errs = append(errs, home.AbsentPath(to))
	}
	return cell, step, errors.Join(errs...)
}

// openShell writes the file system of a cell at the start of a step, and opens a shell in
// it. The shell's exit code is ignored.
func openShell(c *cli.Context, in invocation, cell, step string) (err error) {
	e, err := build.EntryOf(c.String("out"), cell)
	if err != nil {
		return err
	}
	step = cmp.Or(step, build.StepToDebug(c.String("out"), e.ID))
	dir := c.String("to") // "" is a temporary one
	if dir == "" {
		if err := os.MkdirAll(filepath.Join(in.Keys.Home, "scratch"), 0o700); err != nil {
			return err
		}
		if dir, err = os.MkdirTemp(filepath.Join(in.Keys.Home, "scratch"), "shell-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	// The commands in hints name the site of the recipe.
	in.Catalogue = catalogue.Catalogue{Site: build.SiteOf(c.String("out"), e.ID), Recipes: []*recipe.Recipe{{Name: e.Recipe}}}
	if err := in.begin(c.Context); err != nil {
		return err
	}
	err = in.Display.End(in.Catalogue.Hinted(build.WriteStepRootfs(c.Context, in.Setup, e, step, dir)))
	if err != nil {
		return err
	}
	in.out.Note("before step %s of %s; leave with `exit`", step, cell)
	shell := exec.Command(filepath.Join(dir, "shell"))                                                   // Ctrl-C belongs to the commands in the shell
	shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, term.Raw(in.out.Stdout), term.Raw(in.out.Stderr) // the user controls the terminal directly
	err = shell.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil
	}
	return err
}
