package nccltests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// launched returns the command that starts the ranks. Every rank gets the environment of
// a run on top of the one that the launcher gives it, which names its place in the job.
// The launcher itself gets the user's environment without settings of the library.
func (c command) launched(launcher []string) (command, error) {
	path, err := exec.LookPath(launcher[0])
	if err != nil {
		return c, fmt.Errorf("the launcher: %w", err)
	}
	c.args = slices.Concat(launcher[1:], []string{"env"}, c.env, []string{c.path}, c.args)
	c.path, c.env = path, slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, "NCCL_") || strings.HasPrefix(pair, "RCCL_") || strings.HasPrefix(pair, "LD_PRELOAD=")
	})
	return c, nil
}

// shared checks that the launcher works, and that every rank sees the files of the run.
func (c command) shared(ctx context.Context, s Sweep, dir string) error {
	c.args, c.limit = []string{"-c", `for f in "$@"; do test -e "$f" || { echo "$(uname -n) does not see $f" >&2; exit 1; }; done`, "sh", dir, c.path}, min(s.Timeout, maxQuestion)
	if s.Library != "" {
		c.args = append(c.args, s.Library)
	}
	c.path = "sh"
	asked, err := c.launched(s.Launcher)
	if err != nil {
		return err
	}
	end, err := asked.run(ctx)
	if err != nil {
		return err
	}
	if end.exit != 0 {
		return fmt.Errorf("%s: %s (TMPDIR must name a directory that all ranks see)", end.words(), end.telling())
	}
	return nil
}
