package pipelines

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dagger.io/dagger"

	"builder/internal/base/diag"
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
	limited, end := c.step(ctx, "export")
	if err := end(c.unpack(limited, container, filepath.Join(job.Dir, "rootfs"))); err != nil {
		return err
	}
	return writeChrootScripts(job)
}

// unpack writes a container's file system to dir through an archive. The export of a
// whole root file system as a directory hangs halfway (engine v0.19.10, 5 GB in 100,000
// files).
func (c *cell) unpack(ctx context.Context, container *dagger.Container, dir string) error {
	const inside = "/builder-rootfs.tar"
	pack := "tar --one-file-system --numeric-owner -C / -c -f " + inside + " --exclude=." + inside + " .\n"
	done, _, err := c.exec(ctx, container, installCaps, shell(pack))
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(c.Scratch, "rootfs-*") // processes in two containers can have the same ID
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	archive := filepath.Join(scratch, "rootfs.tar")
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
