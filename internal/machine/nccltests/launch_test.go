package nccltests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeLauncher writes a launcher with the options -np N that starts one rank.
func fakeLauncher(t *testing.T, script string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mpirun")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n[ \"$1\" = -np ] || exit 9\nshift 2\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{path, "-np", "16"}
}

func TestLauncher(t *testing.T) {
	s := fakeSweep(t, help+`cat `+data(t, "v2.13.13-all_reduce.txt")+`
echo "args: $*" >&2
env | sort >&2
echo "NCCL version 2.22.3+cuda12.4" > "$(echo "$NCCL_DEBUG_FILE" | sed 's/%h/host/;s/%p/1/')"`)
	s.GPUs, s.Library = 16, t.TempDir()
	s.Launcher = fakeLauncher(t, `RANK_OF_THE_JOB=3 exec "$@"`)
	s.Env = map[string]string{"NCCL_NVLS_ENABLE": "0"}
	t.Setenv("NCCL_P2P_DISABLE", "1")
	t.Setenv("OF_THE_ALLOCATION", "kept")
	m, err := Run(t.Context(), s)
	if err != nil || len(m.Report.Rows) != 3 || m.Log != "NCCL version 2.22.3+cuda12.4\n" {
		t.Fatalf("%d rows, log %q, %v", len(m.Report.Rows), m.Log, err)
	}
	for _, want := range []string{"-g 1 ", "LD_LIBRARY_PATH=" + s.Library + "\n", "NCCL_NVLS_ENABLE=0\n", "NCCL_DEBUG=INFO\n", "RANK_OF_THE_JOB=3\n", "OF_THE_ALLOCATION=kept\n"} {
		if !strings.Contains(m.Output, want) {
			t.Errorf("%q is not in %s", want, m.Output)
		}
	}
	if strings.Contains(m.Output, "NCCL_P2P_DISABLE") {
		t.Errorf("a setting of the user's environment changes the library: %s", m.Output)
	}
}

func TestLauncherThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		launcher []string
		says     string
	}{
		"no such program":      {[]string{"no-such-launcher"}, "no-such-launcher"},
		"wrong options":        {append(fakeLauncher(t, "exit 0")[:1], "-n", "16"), "exit 9"},
		"another file system":  {fakeLauncher(t, `case "$*" in *"does not see"*) echo "node2 does not see /tmp/nccl-tests-1" >&2; exit 1;; esac; exec "$@"`), "node2 does not see /tmp/nccl-tests-1 (TMPDIR must name a directory"},
		"ranks without a node": {fakeLauncher(t, `echo "There are not enough slots available" >&2; exit 1`), "There are not enough slots"},
	} {
		s := fakeSweep(t, help+"cat "+data(t, "v2.13.13-all_reduce.txt"))
		s.Launcher = c.launcher
		if m, err := Run(t.Context(), s); !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
