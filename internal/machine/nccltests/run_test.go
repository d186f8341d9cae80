package nccltests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/internal/machine/guest"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// fakeSweep writes a shell script in place of a program. These tests cover the handling of
// processes and use recorded output.
func fakeSweep(t *testing.T, script string) Sweep {
	t.Helper()
	grace = 300 * time.Millisecond
	path := filepath.Join(t.TempDir(), "all_reduce_perf")
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755))
	return Sweep{
		Guest: guest.AsCaller(), Program: path, GPUs: 2, MinBytes: 1 << 20, MaxBytes: 256 << 20, Factor: 16, Timeout: 20 * time.Second,
	}
}

const help = `case "$1" in --help) echo "USAGE: all_reduce_perf [-h,--help]"; exit 0;; esac
`

func data(t *testing.T, name string) string {
	t.Helper()
	return must.Get(filepath.Abs(filepath.Join("testdata", name)))(t)
}

func TestRunReadsTheTable(t *testing.T) {
	s := fakeSweep(t, help+`cat `+data(t, "v2.13.13-all_reduce.txt")+`
echo "args: $*" >&2
env | sort >&2
echo "NCCL version 2.22.3+cuda12.4" > "$(echo "$NCCL_DEBUG_FILE" | sed 's/%h/host/;s/%p/1/')"`)
	s.Library = "/opt/of our own"
	s.Env = map[string]string{"NCCL_NVLS_ENABLE": "0", "LD_LIBRARY_PATH": "/x:/y"}
	t.Setenv("NCCL_P2P_DISABLE", "1")
	t.Setenv("SECRET", "leaked")
	m := must.Get(Run(t.Context(), s))(t)
	check.That(t, len(m.Report.Rows) == 3 && m.Report.Program == "all_reduce_perf" && m.Log == "NCCL version 2.22.3+cuda12.4\n",
		"got %d rows of %s, log %q", len(m.Report.Rows), m.Report.Program, m.Log)
	for _, want := range []string{
		"args: -b 1048576 -e 268435456 -f 16 -g 2 -n 20 -w 5 -c 1\n",
		"LD_LIBRARY_PATH=/opt/of our own:/x:/y\n", "NCCL_NVLS_ENABLE=0\n", "NCCL_DEBUG=INFO\n", "NCCL_CONF_FILE=/dev/null\n",
	} {
		check.That(t, strings.Contains(m.Output, want), "%q is not in %s", want, m.Output)
	}
	check.That(t, !strings.Contains(m.Output, "SECRET") && !strings.Contains(m.Output, "NCCL_P2P_DISABLE"),
		"the environment of this process leaked: %s", m.Output)
}

// A program runs in its own directory, and relative paths are those of the caller.
func TestRunFromAnywhere(t *testing.T) {
	s := fakeSweep(t, help+"cat "+data(t, "v2.13.13-all_reduce.txt")+"; pwd >&2; echo $LD_LIBRARY_PATH >&2")
	t.Chdir(filepath.Dir(s.Program))
	here := must.Get(os.Getwd())(t)
	s.Program, s.Library = "./all_reduce_perf", "lib"
	m, err := Run(t.Context(), s)
	check.That(t, err == nil && strings.HasSuffix(m.Output, "\n"+filepath.Join(here, "lib")+"\n") && !strings.Contains(m.Output, here+"\n"),
		"got %v, %s", err, m.Output)
}

func TestRunSaysWhy(t *testing.T) {
	table := "cat " + data(t, "v2.13.13-all_reduce.txt") + "\n"
	for name, c := range map[string]struct{ script, says string }{
		"no rows":            {help + "exit 0", "ended with 0, and its output is not a measurement"},
		"cut off":            {help + "head -n 11 " + data(t, "v2.13.13-all_reduce.txt"), "truncated"},
		"CUDA":               {help + "echo \"n1: Test CUDA failure common.cu:99 'no CUDA-capable device is detected'\"; exit 2", "exit 2: n1: Test CUDA failure common.cu:99 'no CUDA-capable"},
		"too few GPUs":       {help + "echo Invalid number of GPUs: 4 requested but only 2 were found. >&2; exit 5", "exit 5 (an unsupported request, such as more GPUs than the host has): Invalid number of GPUs: 4"},
		"bad end":            {help + table + "exit 3", "it failed, although its table is complete: exit 3"},
		"signal":             {help + "kill -SEGV $$", "signal 11 (segmentation fault)"},
		"loader":             {"echo 'all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open shared object file' >&2; exit 127", "it did not start: exit 127: all_reduce_perf: error while loading shared libraries: libnccl.so.2"},
		"too much":           {help + "yes this is a line of output", "printed more than 16777216 bytes"},
		"too much on stderr": {help + "yes this is a line of output >&2", "printed more than 16777216 bytes"},
	} {
		m, err := Run(t.Context(), fakeSweep(t, c.script))
		check.Fails(t, err, c.says, name)
		check.That(t, len(m.Report.Rows) == 0, "%s: an error and a report", name)
	}
}

// A run with wrong values exits with 1, 6 or 7, and its report has the details.
func TestRunReportsWrongValues(t *testing.T) {
	m, err := Run(t.Context(), fakeSweep(t, help+"cat "+data(t, "v2.13.13-wrong.txt")+"; exit 1"))
	check.That(t, err == nil && m.Report.OutOfBounds == 2 && m.Report.Rows[2].InPlace.Wrong == 1_000_000, "got %+v, %v", m.Report, err)
}

// Run leaves neither a hanging program behind nor a child that ignores SIGTERM and
// keeps the output open.
func TestRunKillsTheGroup(t *testing.T) {
	for name, script := range map[string]string{
		"hang":                   "echo before; echo $$ > $PIDS; sleep 1000",
		"deaf":                   "trap '' TERM; echo before; echo $$ > $PIDS; while :; do sleep 1; done",
		"grandchild":             "(trap '' TERM; sh -c 'echo $$ > $PIDS; exec sleep 1000') & echo before; wait",
		"grandchild left behind": "(trap '' TERM; sh -c 'echo $$ > $PIDS; exec sleep 1000') & sleep 0.3; echo before",
	} {
		pids := filepath.Join(t.TempDir(), "pids")
		s := fakeSweep(t, help+script)
		s.Env = map[string]string{"PIDS": pids}
		s.Timeout = 700 * time.Millisecond
		if name == "grandchild left behind" {
			s.Timeout = 20 * time.Second
		}
		start := time.Now()
		m, err := Run(t.Context(), s)
		took := time.Since(start)
		check.That(t, took <= 10*time.Second, "%s: took %v", name, took)
		hangs := name != "grandchild left behind"
		check.That(t, hangs == errors.Is(err, ErrTimeout) && err != nil && strings.Contains(err.Error(), "before"), "%s: got %v", name, err)
		check.That(t, strings.Contains(m.Output, "before"), "%s: the output is lost: %q", name, m.Output)
		gone(t, name, pids)
	}
}

// gone requires that the process with the ID in a file is dead.
func gone(t *testing.T, name, pids string) {
	t.Helper()
	text, err := os.ReadFile(pids)
	must.Hold(t, err == nil, "%s: %v", name, err)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	for range 50 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return // gone, or a zombie
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("%s: process %d is left behind", name, pid)
}

func TestRunStopsWithTheContext(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	start := time.Now()
	_, err := Run(ctx, fakeSweep(t, help+"sleep 1000"))
	check.That(t, errors.Is(err, context.DeadlineExceeded) && time.Since(start) <= 5*time.Second, "got %v after %v", err, time.Since(start))
}

func TestRunNeedsAProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(content), mode))
		return path
	}
	for name, c := range map[string]struct{ program, says string }{
		"absent":         {filepath.Join(dir, "none"), "no such file"},
		"directory":      {dir, "is a directory"},
		"not executable": {write("plain", "#!/bin/sh\n", 0o644), "permission denied"},
		"no program":     {write("data", "\x00\x01\x02", 0o755), "exec format error"},
		"no interpreter": {write("musl", "#!/lib/ld-none.so.1\n", 0o755), "no such file or directory"},
	} {
		s := fakeSweep(t, "")
		s.Program = c.program
		_, err := Run(t.Context(), s)
		check.Fails(t, err, c.says, name)
	}
}

func TestRunRefusesAColon(t *testing.T) {
	s := fakeSweep(t, "exit 9")
	s.Library = "/a:/b"
	_, err := Run(t.Context(), s)
	check.Fails(t, err, "holds a colon")
}

// The test builds two libraries and programs that need them, and runs the real loader.
func TestLoader(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc to make a library with")
	}
	dir := t.TempDir()
	build := func(args ...string) {
		t.Helper()
		cmd := exec.Command("gcc", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "gcc %v: %v\n%s", args, err, out)
	}
	for name, text := range map[string]string{
		"lib.c":  "int ncclProbe(void) { return 0; }\n",
		"main.c": "int ncclProbe(void); int main(void) { return ncclProbe(); }\n",
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, sub := range []string{"ours", "theirs"} {
		must.Succeed(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
		build("-shared", "-o", sub+"/libnccl.so.2", "-Wl,-soname,libnccl.so.2", "lib.c")
	}
	build("-o", "plain", "main.c", "ours/libnccl.so.2")
	build("-o", "stubborn", "main.c", "ours/libnccl.so.2", "-Wl,--disable-new-dtags,-rpath,"+filepath.Join(dir, "theirs"))

	start := func(program, library string) error {
		s := Sweep{Program: filepath.Join(dir, program), Library: library}
		c := command{guest.Program{Path: s.Program, Dir: dir, Env: environ(s, dir)}, guest.AsCaller(), 10 * time.Second}
		return c.starts(t.Context(), library)
	}
	ours := filepath.Join(dir, "ours")
	must.Succeed(t, start("plain", ours))
	check.Fails(t, start("plain", ""), "error while loading shared libraries: libnccl.so.2")
	check.Fails(t, start("stubborn", ours), "DT_RPATH")
}
