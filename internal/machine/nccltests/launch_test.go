package nccltests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/machine/nccllog"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// startsTwo is a launcher that starts two ranks and gives each its number.
const startsTwo = `for RANK in 0 1; do export RANK; "$@" || exit; done`

// fakeLauncher writes a launcher with the options -np N.
func fakeLauncher(t *testing.T, script string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mpirun")
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n[ \"$1\" = -np ] || exit 9\nshift 2\n"+script), 0o755))
	return []string{path, "-np", "2"}
}

// ranked is a program whose first rank prints the table.
func ranked(t *testing.T, more string) string {
	t.Helper()
	return help + `echo "NCCL version 2.22.3+cuda12.4" > "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/host/;s/%p/$RANK/")"
[ "$RANK" = 0 ] && cat ` + data(t, "v2.13.13-all_reduce.txt") + "\n" + more
}

func TestLauncher(t *testing.T) {
	s := fakeSweep(t, ranked(t, `echo "args: $*" >&2
env | sort >&2; pwd >&2`))
	odd := filepath.Join(t.TempDir(), "run=3") // "env" would take it for a variable
	must.Succeed(t, os.Rename(filepath.Dir(s.Program), odd))
	s.Program = filepath.Join(odd, "all_reduce_perf")
	s.Library, s.Launcher = t.TempDir(), fakeLauncher(t, `export OF_THE_JOB=yes NCCL_IB_DISABLE=1 LD_PRELOAD=
`+startsTwo)
	s.Env = map[string]string{"NCCL_NVLS_ENABLE": "0", "ODD": "a b=c'd"}
	t.Setenv("NCCL_P2P_DISABLE", "1")
	t.Setenv("OF_THE_ALLOCATION", "kept")
	for _, name := range []string{"SIGNING_KEY", "UV_PUBLISH_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "GH_TOKEN", "Some_Password"} {
		t.Setenv(name, "secret-of-the-environment")
	}
	m, err := Run(t.Context(), s)
	must.Hold(t, err == nil && len(m.Report.Rows) == 3 && strings.Count(m.Log, "NCCL version") == 2,
		"%d rows, log %q, %v", len(m.Report.Rows), m.Log, err)
	here := must.Get(os.Getwd())(t)
	for _, want := range []string{"-g 1 ", "LD_LIBRARY_PATH=" + s.Library + "\n", "NCCL_NVLS_ENABLE=0\n", "NCCL_DEBUG=INFO\n", "OF_THE_JOB=yes\n", "OF_THE_ALLOCATION=kept\n", "ODD=a b=c'd\n", here + "\n"} {
		check.That(t, strings.Contains(m.Output, want), "%q is not in %s", want, m.Output)
	}
	check.That(t, !strings.Contains(m.Output, "secret-of"), "a rank sees a secret: %s", m.Output)
	for _, name := range []string{"NCCL_P2P_DISABLE", "NCCL_IB_DISABLE"} {
		check.That(t, !strings.Contains(m.Output, name), "%s of the user or the node changes the library: %s", name, m.Output)
	}
}

// Nothing that a launcher does wrong is a failure of the library.
func TestLauncherIsNotTheLibrary(t *testing.T) {
	alone := `RANK=0; export RANK; "$@"; "$@"`
	for name, c := range map[string]struct {
		launcher []string
		program  string
		says     string
	}{
		"no such program":        {[]string{"no-such-launcher"}, "", "no-such-launcher"},
		"wrong options":          {append(fakeLauncher(t, "exit 0")[:1], "-n", "2"), "", "0 of 2 ranks reached the library"},
		"another file system":    {fakeLauncher(t, "echo 'sh: all_reduce_perf: not found' >&2; exit 127"), "", "every rank has to see TMPDIR"},
		"no slots":               {fakeLauncher(t, `echo "There are not enough slots available" >&2; exit 1`), "", "There are not enough slots"},
		"Open MPI's last words":  {fakeLauncher(t, "printf '%s\\n' 'opal_shmem_base_select failed' '--------------------------' 'prterun detected that one or more processes exited' 'Process name: [p@1,0]' 'Exit code:    1' '--------------------------' >&2; exit 1"), "", "opal_shmem_base_select failed"},
		"fewer ranks":            {fakeLauncher(t, `exec "$@"`), "", "ranks"},
		"it waits":               {fakeLauncher(t, "exec sleep 60"), "", "0 of 2 ranks reached the library"},
		"ranks that run alone":   {fakeLauncher(t, alone), "", "the 2 ranks are not one job of MPI with a GPU each: name the interface"},
		"a rank without its GPU": {fakeLauncher(t, startsTwo), help + "echo Invalid number of GPUs: 2 requested but only 1 were found. >&2; exit 5", "Invalid number of GPUs"},
		"MPI that hangs":         {fakeLauncher(t, startsTwo), help + "sleep 60", "0 of 2 ranks reached the library"},
		"MPI that aborts":        {fakeLauncher(t, startsTwo), help + "echo PMI2_Init failed >&2; exit 1", "0 of 2 ranks reached the library: it failed: exit 1"},
		"a node without MPI":     {fakeLauncher(t, startsTwo), help + "echo 'error while loading shared libraries: libmpi.so.40' >&2; exit 127", "0 of 2 ranks reached the library"},
		"a launcher that traces": {fakeLauncher(t, `echo "+ $*" >&2; exec "$@"`), "", "ranks"},
		"a rank without a log":   {fakeLauncher(t, startsTwo), help + `[ "$RANK" = 0 ] && cat ` + data(t, "v2.13.13-all_reduce.txt") + "; exit 0", "0 ranks wrote a log of the library, and 2 ran"},
	} {
		if c.program == "" {
			c.program = ranked(t, "exit 0")
		}
		s := fakeSweep(t, c.program)
		if s.Launcher = c.launcher; name == "it waits" || name == "MPI that hangs" {
			s.Timeout = time.Second
		}
		if m, err := Run(t.Context(), s); !errors.Is(err, ErrNotStarted) || errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestTooMuchLog(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "nccl.a.1.log"))
	if err == nil {
		err = errors.Join(f.Truncate(nccllog.MaxLog+1), f.Close())
	}
	must.Succeed(t, err)
	_, _, err = logs(dir)
	check.That(t, err != nil, "a log that is cut off hides connections")
}
