package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/lock"
)

func rootfsCommand(cat catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "rootfs", Usage: "write the file system as the build step finds it, to go through a build by hand", ArgsUsage: "RECIPE [axes]",
		Description: "DIR/rootfs is the patched source with all that it is built with, DIR/build\nruns the build step in it: as root, in a chroot without a network.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, rootfsFlags(), func(c *cli.Context, o options) error {
			return writeRootfs(c.Context, cat, o, c.String("to"), out)
		}),
	}
}

func writeRootfs(ctx context.Context, cat catalogue, o options, to string, out printer) error {
	if err := absentPath(to); err != nil {
		return err
	}
	drafts, _, err := choose(cat, o)
	if err != nil {
		return err
	}
	if len(drafts) != 1 {
		return diag.Errorf(diag.Usage, "%d cells are chosen, one is wanted", len(drafts)).WithHint("name one value of each axis")
	}
	progress, err := o.display.begin(ctx, out)
	if err != nil {
		return err
	}
	return progress.end(makeRootfs(ctx, cat, o, to, progress, out))
}

func makeRootfs(ctx context.Context, cat catalogue, o options, to string, progress *display, out printer) error {
	w, err := openWorkspace(ctx, o, progress.Note)
	if err != nil {
		return err
	}
	defer w.close()
	entries, err := w.entries(ctx, cat)
	if err != nil {
		return err
	}
	e := entries[len(entries)-1] // before it stands what goes into it
	inputs, err := w.builtInputs(e)
	if err != nil {
		return err
	}
	watch := newWatch(filepath.Join(to, "logs"), e.ID, progress.Progress)
	if err := w.fetcher().Fetch(ctx, e, watch.StepStarted("fetch")); err != nil {
		return err
	}
	watch.StepDone("fetch", 0, false, nil)
	p, err := w.engines[0].up(ctx)
	if err != nil {
		return err
	}
	env, script, err := p.Rootfs(ctx, e, inputs, filepath.Join(to, "rootfs"), watch)
	if err != nil {
		return err
	}
	path := filepath.Join(to, "build")
	if err := os.WriteFile(path, []byte(chrootScript(env, script)), 0o755); err != nil {
		return err
	}
	progress.Close()
	if o.json {
		return printJSON(out, map[string]string{"id": e.ID, "key": e.Key(), "build": path})
	}
	out.say("%s", path)
	return nil
}

// builtInputs returns the wheels of the cells that go into e, which must have
// been built before.
func (w *workspace) builtInputs(e lock.Entry) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		found, ok, err := w.results.FindKey(in.Key, filepath.Join(w.scratch, "inputs", in.Key))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, diag.Errorf(diag.Usage, "its input %s has not been built", in.ID).WithHint("`builder run %s` with the same axes builds it first", e.Recipe)
		}
		wheels = append(wheels, found.Artifacts[0])
	}
	return wheels, nil
}

// chrootScript runs a build step in the file system beside it.
func chrootScript(env map[string]string, script string) string {
	var b strings.Builder
	b.WriteString(`#!/bin/sh
# Runs the build step in rootfs/: the same commands in the same environment.
set -eu
cd "$(dirname "$0")/rootfs"
[ -e proc/self ] || mount -t proc proc proc
[ -c dev/null ] || mount --rbind /dev dev
exec unshare -n env -i \
`)
	for _, key := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "  %s=%s \\\n", key, quoted(env[key]))
	}
	fmt.Fprintf(&b, "  chroot . sh -euc %s\n", quoted("cd /build/src\n"+script))
	return b.String()
}

// quoted makes one word of a shell script.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
