package nccltests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// inRank runs a command in a rank. Settings of the library that the launcher or a profile
// of the node brought are removed, and those of the run are set. Its arguments are the
// variables, "--" and the command.
const inRank = `for name in $(env | sed -n 's/^\([NR]CCL_[A-Za-z0-9_]*\)=.*/\1/p') LD_PRELOAD LD_AUDIT; do unset "$name"; done
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"`

// seen is run in every rank before the sweep. It leaves a file for the rank, so that the
// directory of the run is known to be one for all ranks.
const seen = `dir=$1; shift
for f in "$dir" "$@"; do test -e "$f" || { echo "$(uname -n) does not see $f" >&2; exit 1; }; done
mktemp "$dir/rank.XXXXXX" > /dev/null || { echo "$(uname -n) cannot write to $dir" >&2; exit 1; }`

// unseen matches the complaint of a rank, and not the text of the script.
var unseen = regexp.MustCompile(`(?m)^.*?\S+ (does not see|cannot write to) /.*`)

// kept matches the variables that no launcher gets: settings of the library, and secrets.
var kept = regexp.MustCompile(`^(NCCL|RCCL|BUILDER|ACTIONS)_|(?i:token|secret|passw|credential|signing|private|api_?key)`)

// launched returns the command that starts the ranks, in the user's directory and with
// the user's environment without secrets and settings of the library. Every rank gets the environment
// of a run on top of the one that the launcher gives it, which names its place in the job.
func (c command) launched(launcher []string) (command, error) {
	path, err := exec.LookPath(launcher[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		c.dir, err = os.Getwd()
	}
	if err != nil {
		return c, fmt.Errorf("the launcher: %w", err)
	}
	c.args = slices.Concat(launcher[1:], []string{"sh", "-c", inRank, "sh"}, c.env, []string{"--", c.path}, c.args)
	c.path, c.env = path, slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return kept.MatchString(name)
	})
	return c, nil
}

// shared checks that the launcher starts the ranks, and that every rank sees the files of
// the run and writes to its directory.
func (c command) shared(ctx context.Context, s Sweep, dir string) error {
	c.args, c.path = []string{"-c", seen, "sh", dir, c.path}, "sh"
	if s.Library != "" {
		c.args = append(c.args, s.Library)
	}
	asked, err := c.launched(s.Launcher)
	if err != nil {
		return err
	}
	end, err := asked.run(ctx)
	if errors.Is(err, ErrTimeout) {
		return fmt.Errorf("%s started no ranks within %v: %s", s.Launcher[0], c.limit, end.telling())
	}
	if err != nil {
		return err
	}
	ranks, err := filepath.Glob(filepath.Join(dir, "rank.*"))
	output := end.stdout + "\n" + end.stderr
	said := unseen.FindString(output)
	switch {
	case err != nil:
	case said != "" && (end.Exit != 0 || len(ranks) != s.GPUs):
		err = fmt.Errorf("%s: set TMPDIR to a directory that all ranks see; a directory of --programs or --against must be visible to all of them too", said)
	case end.Exit != 0:
		err = fmt.Errorf("%s ended with %d: %s", s.Launcher[0], end.Exit, lastLines(output))
	case len(ranks) != s.GPUs:
		err = fmt.Errorf("%s starts %d ranks, %d were requested", s.Launcher[0], len(ranks), s.GPUs)
	}
	return err
}

// oneJob returns an error if the ranks of a launcher did not run as one job, which says
// nothing about the library.
func (s Sweep) oneJob(r Report, logs int, err error) error {
	switch {
	case errors.Is(err, ErrNotStarted):
		return err
	case errors.Is(err, ErrFailed) && logs < s.GPUs:
		return s.notReached(logs, err)
	case errors.Is(err, ErrFailed) || err != nil && len(r.Devices) == s.GPUs:
		return err
	case err != nil || len(r.Devices) != s.GPUs:
		return errors.Join(fmt.Errorf("%w: the %d ranks are not one job of MPI with a GPU each: name the interface of the launcher (srun --mpi=pmix), and take programs built with MPI (builder run nccl-tests --mpi on)", ErrNotStarted, s.GPUs), err)
	case logs != s.GPUs:
		return fmt.Errorf("%w: %d ranks wrote a log of the library, and %d ran", ErrNotStarted, logs, s.GPUs)
	}
	return nil
}

// notReached is the error of a job that ended before every rank had called the library:
// the cause is MPI, a node or the launcher. It does not wrap err, which can say that the
// library failed.
func (s Sweep) notReached(logs int, err error) error {
	return fmt.Errorf("%w: %d of %d ranks reached the library: %v", ErrNotStarted, logs, s.GPUs, err)
}
