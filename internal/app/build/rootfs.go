package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/build/run"
	"builder/internal/build/runlog"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/pipelines"
)

// A Rootfs is the file system of a cell at the start of its build step.
type Rootfs struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	Build string `json:"build"` // path of the script for the build step
}

// rootfs writes the file system of a cell at the start of a step to dir.
func (s Setup) rootfs(ctx context.Context, w *home.Workspace, e lock.Entry, step, dir string) (Rootfs, error) {
	inputs, err := builtInputs(w, e)
	if err != nil {
		return Rootfs{}, err
	}
	_, err = os.Lstat(dir)
	ours := errors.Is(err, fs.ErrNotExist)
	if err = os.MkdirAll(dir, 0o755); err == nil { // before minutes of work
		err = s.preflight(ctx, []lock.Entry{e})
	}
	build := ""
	if err == nil {
		build, err = s.writeStep(ctx, w, e, inputs, step, dir)
	}
	if err != nil && ours { // half of a file system helps nobody, and the next try needs the name
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return Rootfs{e.ID, e.Key(), build}, err
}

// EntryOf returns the entry of a cell below out. cell is its id or a part of it.
func EntryOf(out, cell string) (lock.Entry, error) {
	found, err := filepath.Glob(filepath.Join(out, "*", lock.EntryFile))
	if err != nil {
		return lock.Entry{}, diag.Errorf(diag.Usage, "--out: %w", err)
	}
	var ids []string
	for _, path := range found {
		ids = append(ids, filepath.Base(filepath.Dir(path)))
	}
	id, err := runlog.FindByName("cell", cell, ids, func(id string) string { return id })
	if err != nil {
		return lock.Entry{}, err
	}
	e, err := lock.ReadEntry(filepath.Join(out, id))
	if err == nil && e.Pipeline != plan.Revision() {
		err = diag.Errorf(diag.Drift, "%s was built with other scripts than those of this builder", id).WithHint("build it again first, with the command that built it: `builder run %s` with its axes, and with --recipes if the recipe is yours", e.Recipe)
	}
	return e, err
}

// SiteOf returns the site of the recipes in the last run of a cell, or "".
func SiteOf(out, id string) string {
	last, err := report.Read(filepath.Join(out, "run.json"))
	if err != nil {
		return ""
	}
	for _, c := range last.Cells {
		if c.ID == id {
			return c.Recipes
		}
	}
	return ""
}

// WriteStepRootfs writes the file system of an entry's cell at the start of a step to dir.
func WriteStepRootfs(ctx context.Context, s Setup, e lock.Entry, step, dir string) (Rootfs, error) {
	w, err := s.Open(ctx)
	if err != nil {
		return Rootfs{}, err
	}
	defer w.Close()
	return s.rootfs(ctx, w, e, step, dir)
}

// StepToDebug returns the step that failed in the last run of a cell, if it is one of
// [DebugSteps], and otherwise the build step. A directory without the record of a run
// tells nothing about steps.
func StepToDebug(out, cell string) string {
	root, cells, err := runlog.Open(runlog.Request{Out: out, Cell: cell})
	if err != nil {
		return pipelines.LastStep
	}
	defer root.Close()
	for _, c := range cells {
		if c.Failed >= 0 && slices.Contains(DebugSteps(), c.Steps[c.Failed].Step) {
			return c.Steps[c.Failed].Step
		}
	}
	return pipelines.LastStep
}

// DebugSteps returns the steps with a file system at their start.
func DebugSteps() []string {
	var names []string
	for _, s := range pipelines.Steps()[1:] {
		names = append(names, s.Name)
	}
	return names
}

// writeStep writes to dir the file system of a cell at the start of a step, and two
// scripts: build runs the build step in it, shell opens a shell in it. It returns the
// path of build.
func (s Setup) writeStep(ctx context.Context, w *home.Workspace, e lock.Entry, inputs []artifact.Artifact, step, dir string) (string, error) {
	watch := NewWatch(filepath.Join(dir, "logs"), e.ID, s.Display)
	if err := run.Fetch(ctx, watch, s.Sources.Fetcher(w), e); err != nil {
		return "", err
	}
	p, err := host.FirstEngine(ctx, s.Setup, w)
	if err != nil {
		return "", err
	}
	env, script, err := p.Rootfs(ctx, run.Job{Entry: e, Inputs: inputs, Dir: filepath.Join(dir, "rootfs")}, step, watch)
	if err != nil {
		return "", err
	}
	for name := range env {
		if !shell.Name(name) { // the entry may be untrusted
			return "", diag.Errorf(diag.Drift, "%s: env: %q is not the name of a variable", e.ID, name)
		}
	}
	build := filepath.Join(dir, "build")
	return build, errors.Join(
		os.WriteFile(build, []byte(chrootScript("Runs the build step in rootfs/: the same commands in the same environment.", env, chrooted+"sh -euc "+shell.Quote("cd /build/src\n"+script))), 0o755),
		os.WriteFile(filepath.Join(dir, "shell"), []byte(chrootScript("Opens a shell in rootfs/, in the environment of the build step.", env, `"TERM=${TERM:-dumb}" `+chrooted+`sh -c `+shell.Quote(anyShell))), 0o755),
	)
}

// anyShell opens the best shell of an image, in the source directory if it exists.
const anyShell = "cd /build/src 2>/dev/null || cd /; if command -v bash >/dev/null; then exec bash --norc -i; fi; exec sh -i"

// builtInputs returns the wheels of e's input cells. It is an error if one has not been
// built.
func builtInputs(w *home.Workspace, e lock.Entry) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		found, ok, err := w.Results.FindKey(in.Key, filepath.Join(w.Scratch, "inputs", in.Key))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, diag.Errorf(diag.Usage, "the input %s is not built", in.ID).WithHint("build it first with `builder run %s` and the same axes", e.Recipe)
		}
		wheels = append(wheels, found.Artifacts[0])
	}
	return wheels, nil
}

// chrooted is the start of a command in the file system: root without capabilities.
const chrooted = "chroot . setpriv --bounding-set -all --inh-caps -all --no-new-privs "

// chrootScript returns a script to run a command in the file system beside it. The
// command runs as root without a network, the host's devices or the host's kernel
// settings. The script's mounts and processes end with it.
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

// shellAt returns the command to open a shell at the failed step of a cell, or "" if
// the step has no file system.
func shellAt(o run.Outcome, out string) string {
	if len(o.Steps) == 0 {
		return ""
	}
	step := o.Steps[len(o.Steps)-1].Name
	if !slices.Contains(DebugSteps(), step) {
		return ""
	}
	command := "builder debug shell " + o.Entry.ID
	if step != pipelines.LastStep {
		command += " " + step
	}
	if out != "out" {
		command += " --out " + out
	}
	return fmt.Sprintf("`%s` opens a shell where it failed; --to DIR keeps your changes there", command)
}
