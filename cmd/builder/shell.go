package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/plan/lock"
	"builder/internal/view/term"
	"builder/pipelines"
)

// standOptions is what the flags of shell and repro say.
type standOptions struct {
	options
	cell string // id or a part of it, in the results in out
	step string // the step before which the cell stands
	to   string // directory; "" is one that is removed again
}

func shellCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "shell", Usage: "open a shell where a step of a cell that was run begins", ArgsUsage: "CELL", OnUsageError: usageError,
		Description: "The file system is that before the step: the image, the packages and the source\nas far as they had come, with the environment of the build step and without a\nnetwork. What is changed in it is gone with the shell, unless --to keeps it.",
		Flags:       standFlags("keep the file system in `DIR`, which must not exist"),
		Action:      standing(func(ctx context.Context, o standOptions) error { return openShell(ctx, o, out) }),
	}
}

func reproCommand(out printer) *cli.Command {
	return &cli.Command{
		Name: "repro", Usage: "write what replays the build step of a cell that was run, without this tool", ArgsUsage: "CELL", OnUsageError: usageError,
		Description: "DIR/rootfs is the file system as the step finds it, DIR/build a script that runs\nthe build step in it, DIR/shell one that opens a shell. A host needs root,\nunshare and chroot for them, and nothing else: DIR can be sent to somebody.",
		Flags:       standFlags("write to `DIR`, which must not exist"),
		Action:      standing(func(ctx context.Context, o standOptions) error { return writeRepro(ctx, o, out) }),
	}
}

// standing has a verb read its flags before it does something.
func standing(do func(context.Context, standOptions) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		o, err := readStandOptions(c)
		if err != nil {
			return err
		}
		return do(c.Context, o)
	}
}

func standFlags(to string) []cli.Flag {
	return append([]cli.Flag{
		outFlag("take the cell from the results in `DIR`"),
		&cli.StringFlag{Name: "at", Value: pipelines.LastStep, Usage: "stand before `STEP`: " + strings.Join(stepsToStandAt(), ", ")},
		&cli.StringFlag{Name: "to", Usage: to},
		&cli.BoolFlag{Name: "offline", EnvVars: []string{"BUILDER_OFFLINE"}, Usage: "use nothing but the store"},
		setFlag(),
		progressFlag(),
	}, engineFlags()...)
}

// stepsToStandAt are the steps before which there is a file system.
func stepsToStandAt() []string {
	var names []string
	for _, s := range pipelines.Steps()[1:] {
		names = append(names, s.Name)
	}
	return names
}

func readStandOptions(c *cli.Context) (standOptions, error) {
	places, err := readPlaces(c)
	o := standOptions{options: places, cell: c.Args().First(), step: c.String("at"), to: c.String("to")}
	o.out = c.String("out")
	faults := []error{err, unexpected(c, 1)}
	o.engines, err = readEngines(c, 1)
	faults = append(faults, err)
	o.display, err = readDisplay(c)
	faults = append(faults, err)
	if o.cell == "" {
		faults = append(faults, diag.Errorf(diag.Usage, "%s: name a cell", c.Command.HelpName).WithHint("`builder logs --out %s` lists those of the run", o.out))
	}
	if known := stepsToStandAt(); !slices.Contains(known, o.step) {
		faults = append(faults, diag.Errorf(diag.Usage, "--at: no step is called %q", o.step).WithHint("%s", diag.DidYouMean(o.step, known)))
	}
	if o.to != "" {
		faults = append(faults, absentPath(o.to))
	}
	return o, errors.Join(faults...)
}

// entry is what the cell was built from.
func (o standOptions) entry() (lock.Entry, error) {
	found, err := filepath.Glob(filepath.Join(o.out, "*", lock.EntryFile))
	if err != nil {
		return lock.Entry{}, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	var ids []string
	for _, path := range found {
		ids = append(ids, filepath.Base(filepath.Dir(path)))
	}
	id, err := pick("cell", o.cell, ids, func(id string) string { return id })
	if err != nil {
		return lock.Entry{}, err
	}
	e, err := lock.ReadEntry(filepath.Join(o.out, id))
	if err == nil && e.Pipeline != revision() {
		err = diag.Errorf(diag.Drift, "%s was built with other scripts than this builder has", id).WithHint("run it again first: builder run %s", e.Recipe)
	}
	return e, err
}

// stands makes the cell stand before the step in dir, and does something with the
// script of the build step there.
func (o standOptions) stands(ctx context.Context, dir string, out printer, do func(build string) error) error {
	e, err := o.entry()
	if err != nil {
		return err
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	var build string
	err = progress.end(func() error {
		w, err := openWorkspace(ctx, o.options, progress.Note)
		if err != nil {
			return err
		}
		defer w.close()
		inputs, err := w.builtInputs(e)
		if err != nil {
			return err
		}
		build, err = w.standAt(ctx, e, inputs, o.step, dir, progress)
		return err
	}())
	if err != nil {
		return err
	}
	return do(build)
}

// writeRepro leaves in o.to what replays the build step.
func writeRepro(ctx context.Context, o standOptions, out printer) error {
	if o.to == "" {
		return diag.Errorf(diag.Usage, "--to: name a directory to write to").WithHint("--to DIR, which must not exist")
	}
	return o.stands(ctx, o.to, out, func(build string) error {
		out.say("%s", build)
		return nil
	})
}

// openShell opens a shell in the file system of a cell and waits for its end. How
// the shell ends is nobody's fault.
func openShell(ctx context.Context, o standOptions, out printer) (err error) {
	dir := o.to
	if dir == "" {
		if err := os.MkdirAll(filepath.Join(o.home, "scratch"), 0o755); err != nil {
			return err
		}
		if dir, err = os.MkdirTemp(filepath.Join(o.home, "scratch"), "shell-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	return o.stands(ctx, dir, out, func(build string) error {
		out.note("before step %s of %s; `exit` leaves it", o.step, o.cell)
		shell := exec.Command(filepath.Join(filepath.Dir(build), "shell"))                             // Ctrl-C is for what runs in it
		shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, term.Raw(out.stdout), term.Raw(out.stderr) // it is the person's
		err := shell.Run()
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return nil
		}
		return err
	})
}

// shellAt is the command that opens a shell where a cell failed, "" where there is
// no file system yet.
func shellAt(o run.Outcome, out string) string {
	if len(o.Steps) == 0 {
		return ""
	}
	step := o.Steps[len(o.Steps)-1].Name
	if !slices.Contains(stepsToStandAt(), step) {
		return ""
	}
	command := "builder shell " + o.Entry.ID
	if step != pipelines.LastStep {
		command += " --at " + step
	}
	if out != "out" {
		command += " --out " + out
	}
	return fmt.Sprintf("`%s` opens a shell where it failed", command)
}
