package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/assemble"
	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/pipelines"
)

func rootfsCommand(cat catalogue.Catalogue, fault error, out printer) *cli.Command {
	return &cli.Command{
		Name: "rootfs", Usage: "write the file system as the build step finds it, to go through a build by hand", ArgsUsage: "RECIPE [axes]",
		Description: "DIR/rootfs is the patched source with all that it is built with, DIR/build\nruns the build step in it, DIR/shell opens a shell: as root, in a chroot\nwithout a network. Neither needs builder. For a cell that was run there are\nalso repro and shell.",
		Flags:       []cli.Flag{recipesFlag()}, OnUsageError: verbUsageError, HideHelpCommand: true,
		Action: unknownRecipe(cat, fault),
		Subcommands: recipeCommands(cat, fault, rootfsFlags(), func(c *cli.Context, o options) error {
			return writeRootfs(c.Context, cat, o, c.String("to"), out)
		}),
	}
}

func writeRootfs(ctx context.Context, cat catalogue.Catalogue, o options, to string, out printer) error {
	if err := absentPath(to); err != nil {
		return err
	}
	drafts, _, err := assemble.Choose(cat, o.recipe, o.filter)
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

func makeRootfs(ctx context.Context, cat catalogue.Catalogue, o options, to string, progress *display, out printer) error {
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
	path, err := w.standAt(ctx, e, inputs, pipelines.LastStep, to, progress)
	if err != nil {
		return err
	}
	progress.Close()
	if o.json {
		return printJSON(out, map[string]string{"id": e.ID, "key": e.Key(), "build": path})
	}
	out.say("%s", path)
	return nil
}

// standAt writes to dir what a cell is when a step begins: its file system, and
// the scripts build, which runs the build step in it, and shell. It returns the
// path of the first.
func (w *workspace) standAt(ctx context.Context, e lock.Entry, inputs []artifact.Artifact, step, dir string, progress *display) (string, error) {
	watch := newWatch(filepath.Join(dir, "logs"), e.ID, progress.Display)
	if err := run.Fetch(ctx, watch, w.fetcher(), e); err != nil {
		return "", err
	}
	p, err := w.engines[0].up(ctx)
	if err != nil {
		return "", err
	}
	env, script, err := p.Rootfs(ctx, e, inputs, step, filepath.Join(dir, "rootfs"), watch)
	if err != nil {
		return "", err
	}
	for name := range env {
		if !shell.Name(name) { // of an entry that somebody else wrote
			return "", diag.Errorf(diag.Drift, "%s: env: %q is no name of a variable", e.ID, name)
		}
	}
	build := filepath.Join(dir, "build")
	return build, errors.Join(
		os.WriteFile(build, []byte(chrootScript("Runs the build step in rootfs/: the same commands in the same environment.", env, chrooted+"sh -euc "+shell.Quote("cd /build/src\n"+script))), 0o755),
		os.WriteFile(filepath.Join(dir, "shell"), []byte(chrootScript("Opens a shell in rootfs/, in the environment of the build step.", env, `"TERM=${TERM:-dumb}" `+chrooted+`sh -c `+shell.Quote(anyShell))), 0o755),
	)
}

// anyShell opens the best shell that an image has, where the source is if it is
// there already.
const anyShell = "cd /build/src 2>/dev/null || cd /; if command -v bash >/dev/null; then exec bash --norc -i; fi; exec sh -i"

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

// chrooted begins a command in the file system: as root without a capability.
const chrooted = "chroot . setpriv --bounding-set -all --inh-caps -all --no-new-privs "

// chrootScript runs a command in the file system beside it, as root without a
// network, without the devices of the host and without its kernel settings. Its
// mounts and processes end with it.
func chrootScript(about string, env map[string]string, command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/sh
# %s
# It needs root, and nothing of builder.
set -eu
cd "$(dirname "$0")/rootfs"
exec unshare --mount --net --pid --ipc --uts --fork --kill-child --propagation private sh -euc '
  ip link set lo up 2>/dev/null || true
  mount -t proc proc proc
  for name in sys sysrq-trigger irq bus; do
    if [ -e proc/$name ]; then mount --bind proc/$name proc/$name; mount -o remount,ro,bind proc/$name; fi
  done
  mount -t tmpfs -o mode=755 dev dev
  for name in null zero full random urandom tty; do : >dev/$name; mount --bind /dev/$name dev/$name; done
  mkdir dev/pts dev/shm
  mount --bind /dev/pts dev/pts
  mount -t tmpfs -o mode=1777 shm dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  for name in 0:stdin 1:stdout 2:stderr; do ln -s /proc/self/fd/"${name%%:*}" dev/"${name#*:}"; done
  exec env -i "$@"' sh \
`, about)
	for _, key := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "  %s=%s \\\n", shell.Word(key), shell.Quote(env[key]))
	}
	fmt.Fprintf(&b, "  %s\n", command)
	return b.String()
}
