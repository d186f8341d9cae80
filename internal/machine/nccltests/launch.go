package nccltests

import (
	"errors"
	"fmt"
	"maps"
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
		c.Dir, err = os.Getwd()
	}
	if err != nil {
		return c, fmt.Errorf("the launcher: %w", err)
	}
	c.Args = slices.Concat(launcher[1:], []string{"sh", "-c", inRank, "sh"}, c.Env, []string{"--", c.Path}, c.Args)
	c.Path, c.Env = path, slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return kept.MatchString(name)
	})
	return c, nil
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
	return fmt.Errorf("%w: %d of %d ranks reached the library: %v; every rank has to see TMPDIR, and the directories of --programs and --against", ErrNotStarted, logs, s.GPUs, err)
}

// environ returns the complete environment of a run. A variable of the user's environment
// cannot change a result unless the sweep sets it.
//
// HOME and NCCL_CONF_FILE keep ~/.nccl.conf out (src/misc/param.cc). Before 2.23.4 the
// library always reads that file in the home from passwd. /etc/nccl.conf belongs to the
// host and is used.
func environ(s Sweep, dir string) []string {
	env := map[string]string{
		"PATH":              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LC_ALL":            "C",
		"HOME":              dir,
		"NCCL_CONF_FILE":    "/dev/null",
		"CUDA_DEVICE_ORDER": "PCI_BUS_ID", // the order of nvidia-smi
		"NCCL_DEBUG":        "INFO",
		"NCCL_DEBUG_SUBSYS": "INIT,ENV,NET",
		"NCCL_DEBUG_FILE":   filepath.Join(dir, "nccl.%h.%p.log"),
	}
	maps.Copy(env, s.Env)
	if own := env["LD_LIBRARY_PATH"]; s.Library != "" && own != "" {
		env["LD_LIBRARY_PATH"] = s.Library + ":" + own
	} else if s.Library != "" {
		env["LD_LIBRARY_PATH"] = s.Library
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// arguments returns the arguments of a process, which are the same for every release. It
// has one thread, and measures each size in 20 iterations after 5 to warm up.
func (s Sweep) arguments() []string {
	gpus := s.GPUs
	if len(s.Launcher) > 0 {
		gpus = 1
	}
	return []string{
		"-b", fmt.Sprint(s.MinBytes), "-e", fmt.Sprint(s.MaxBytes), "-f", fmt.Sprint(s.Factor),
		"-g", fmt.Sprint(gpus), "-n", "20", "-w", "5", "-c", "1",
	}
}
