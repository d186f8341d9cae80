package pipelines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	shellwords "builder/internal/base/shell"
	"builder/internal/build/run"
)

// Rootfs writes the file system before a step to the directory rootfs of a job, and beside
// it two scripts to repeat a failed build by hand: build runs the build step in it, shell
// opens a shell in it.
func (e *Engine) Rootfs(ctx context.Context, job run.Job, before string, events run.Events) error {
	steps := Steps()
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == before })
	if i < 1 {
		return fmt.Errorf("no file system stands before the step %q", before)
	}
	ctx, c, err := e.open(ctx, job, events)
	if err != nil {
		return err
	}
	defer c.close(ctx)
	container, err := c.walk(ctx, steps[:i])
	if err != nil {
		return err
	}
	if venv := venvOf(c.entry.Image); len(sharedWheels(c.entry)) > 0 && i > 1 {
		container = container.WithoutMount(venv).WithDirectory(venv, container.Directory(venv)) // an archive has no mounts
	}
	limited, end := c.step(ctx, "export")
	if err := end(unpack(limited, c.session, container, e.Scratch, filepath.Join(job.Dir, "rootfs"))); err != nil {
		return err
	}
	return writeChrootScripts(job)
}

// unpack writes a container's file system to dir through an archive in scratch. The export
// of a whole root file system as a directory hangs halfway (engine v0.19.10, 5 GB in
// 100,000 files).
func unpack(ctx context.Context, s *session, container *dagger.Container, scratch, dir string) error {
	const inside = "/builder-rootfs.tar"
	pack := "tar --one-file-system --numeric-owner -C / -c -f " + inside + " --exclude=." + inside + " .\n"
	done, _, err := s.exec(ctx, container, firstTime, installCaps, shell(pack))
	if err != nil {
		return err
	}
	made, err := os.MkdirTemp(scratch, "rootfs-*") // processes in two containers can have the same ID
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	archive := filepath.Join(made, "rootfs.tar")
	if _, err := done.File(inside).Export(ctx, archive); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "-p", "--numeric-owner", "-C", dir, "-f", archive)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("No space left on device")) { // tar prints a line for each file
		return diag.Errorf(diag.Usage, "unpacking the file system: %w", &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC})
	}
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("unpacking the file system: %w: %s", err, first)
	}
	return nil
}

// writeChrootScripts writes the scripts build and shell beside the file system of a job.
func writeChrootScripts(job run.Job) error {
	env := buildEnv(job.Entry)
	for name := range env {
		if !shellwords.Name(name) { // the entry may be untrusted
			return diag.Errorf(diag.Drift, "%s: env: %q is not the name of a variable", job.Entry.ID, name)
		}
	}
	build := chrooted + "sh -euc " + shellwords.Quote("cd /build/src\n"+job.Entry.Script)
	shell := `"TERM=${TERM:-dumb}" ` + chrooted + `sh -c ` + shellwords.Quote(anyShell)
	return errors.Join(
		os.WriteFile(filepath.Join(job.Dir, "build"), []byte(chrootScript("Runs the build step in rootfs/: the same commands in the same environment.", env, build)), 0o755),
		os.WriteFile(filepath.Join(job.Dir, "shell"), []byte(chrootScript("Opens a shell in rootfs/, in the environment of the build step.", env, shell)), 0o755),
	)
}

// anyShell opens the best shell of an image, in the source directory if it exists.
const anyShell = "cd /build/src 2>/dev/null || cd /; if command -v bash >/dev/null; then exec bash --norc -i; fi; exec sh -i"

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
		fmt.Fprintf(&b, "  %s=%s \\\n", shellwords.Word(key), shellwords.Quote(env[key]))
	}
	fmt.Fprintf(&b, "  %s\n", command)
	return b.String()
}
