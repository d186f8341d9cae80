package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/app"
	"builder/internal/base/diag"
	"builder/internal/machine/nccltests"
)

// benchHost writes two libraries and two programs and hides the GPUs.
func benchHost(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	bare(t)
	t.Setenv("TMPDIR", t.TempDir())
	place(t, map[string]string{
		"vendor/libnccl.so.2": "vendor", "ours/libnccl.so.2": "ours", "tests/all_reduce_perf": "#!", "tests/broadcast_perf": "#!",
	})
}

// place writes programs and fake libraries to the current directory.
func place(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// sweeps replaces the programs: the library ours takes a tenth more time.
func sweeps(t *testing.T, change func(nccltests.Sweep, *nccltests.Measured) error) {
	t.Helper()
	before := runTests
	t.Cleanup(func() { runTests = before })
	runTests = func(_ context.Context, s nccltests.Sweep) (nccltests.Measured, error) {
		m := nccltests.Measured{Log: "NCCL version 2.28.9+cuda13.0\n"}
		us := 10.0
		if filepath.Base(s.Library) == "ours" {
			us, m.Log = 11, "NCCL version 2.29.7+cuda13.0\n"
		}
		for bytes := s.MinBytes; bytes <= s.MaxBytes; bytes *= int64(s.Factor) {
			timing := nccltests.Timing{Measured: true, Checked: true, Microseconds: us, BusBW: float64(bytes) / us / 1e3}
			m.Report.Rows = append(m.Report.Rows, nccltests.Row{Bytes: bytes, OutOfPlace: timing, InPlace: timing})
		}
		return m, change(s, &m)
	}
}

func unchanged(nccltests.Sweep, *nccltests.Measured) error { return nil }

func builder(args ...string) (code diag.Code, stdout, stderr string) {
	var out, errs bytes.Buffer
	n := Main(append([]string{"builder"}, args...), &out, &errs)
	return diag.Code(n), out.String(), errs.String()
}

// compareArgs returns the arguments to compare the libraries of [benchHost].
func compareArgs(more ...string) []string {
	return append([]string{
		"bench", "--library", "vendor=vendor", "--library", "ours=ours/libnccl.so.2", "--tests", "tests", "--gpus", "2",
		"--collectives", "all_reduce,broadcast", "--min-bytes", "1K", "--max-bytes", "1M", "--factor", "4",
	}, more...)
}

func TestBench(t *testing.T) {
	benchHost(t)
	sweeps(t, unchanged)
	code, stdout, stderr := builder(compareArgs("--env", "NCCL_ALGO=Ring,Tree", "--out", "here")...)
	if code != diag.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"0.909..0.909", "slower", "6 slower", "here/bench.json\nhere/bench.html\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, stdout)
		}
	}
	for _, want := range []string{"warm-up all_reduce vendor started", "round 5 of 5 broadcast ours done", "4 of 24 sweeps done, about"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr)
		}
	}
	r, err := app.ReadBench("here/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	if r.Libraries[1].Version != "2.29.7+cuda13.0" || len(r.Libraries[1].SHA256) != 64 || r.Conditions.Env["NCCL_ALGO"] != "Ring,Tree" ||
		r.Finished.IsZero() || !strings.HasSuffix(r.Command, "--env NCCL_ALGO=Ring,Tree --out here") {
		t.Errorf("bench.json: %+v", r)
	}
	page, err := os.ReadFile("here/bench.html")
	if err != nil || !bytes.Contains(page, []byte("2.29.7&#43;cuda13.0")) {
		t.Errorf("bench.html: %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBenchJSONAndRender(t *testing.T) {
	benchHost(t)
	sweeps(t, unchanged)
	code, stdout, stderr := builder(compareArgs("--json", "--rounds", "1")...)
	file, err := os.ReadFile("out/bench.json")
	if code != diag.OK || err != nil || stdout != string(file) {
		t.Fatalf("exit code %d, %v: stdout is not bench.json\n%s", code, err, stderr)
	}
	first, err := os.ReadFile("out/bench.html")
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = builder("bench", "--render", "out/bench.json", "--out", "again")
	again, err := os.ReadFile("again/bench.html")
	if code != diag.OK || stdout != "again/bench.html\n" || err != nil || !bytes.Equal(first, again) {
		t.Errorf("exit code %d, %v: the page is another\n%s%s", code, err, stdout, stderr)
	}
}

// Measurements are written even if an error ends the run. The exit code depends on the
// error.
func TestBenchFails(t *testing.T) {
	wrong := func(s nccltests.Sweep, m *nccltests.Measured) error {
		if filepath.Base(s.Library) == "ours" {
			m.Report.Rows[0].OutOfPlace.Wrong = 7
		}
		return nil
	}
	calls := 0
	tests := map[string]struct {
		change func(nccltests.Sweep, *nccltests.Measured) error
		args   []string
		code   diag.Code
		stderr string
		sizes  int // number of sizes of all_reduce in the file
	}{
		"wrong values": {wrong, nil, diag.Gate, "measuring all_reduce of ours in the warm-up round: 1 KiB: 7 wrong values", 6},
		"no program": {func(nccltests.Sweep, *nccltests.Measured) error {
			return diag.Errorf(diag.Unexpected, "exec format error")
		}, nil, diag.Unexpected, "all_reduce of vendor in the warm-up round: exec format error", 0},
		"time limit": {func(nccltests.Sweep, *nccltests.Measured) error {
			time.Sleep(time.Millisecond)
			return nil
		}, []string{"--time-limit", "1ns"}, diag.Unexpected, "no measurement: the time limit of 1ns is over", 0},
		"time limit later": {func(nccltests.Sweep, *nccltests.Measured) error {
			if calls++; calls == 8 { // the first round after the warm-up is done
				time.Sleep(time.Second)
			}
			return nil
		}, []string{"--time-limit", "900ms"}, diag.OK, "stopped: the time limit of 900ms is over", 6},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			benchHost(t)
			sweeps(t, test.change)
			code, _, stderr := builder(compareArgs(test.args...)...)
			if code != test.code || !strings.Contains(stderr, test.stderr) {
				t.Errorf("exit code %d, want %d: %s", code, test.code, stderr)
			}
			r, err := app.ReadBench("out/bench.json")
			if err != nil || len(r.Collectives[0].Sizes) != test.sizes {
				t.Errorf("bench.json: %v, %+v", err, r.Collectives)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	got := commandLine([]string{"/tmp/builder", "bench", "--env", "A=b c", "", "it's", "x=1,2"})
	if want := `builder bench --env 'A=b c' '' 'it'\''s' x=1,2`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The real runner starts a fake rccl-tests with the GPUs visible here and parses its
// output. The fake prints the recorded output of an rccl-tests release and the version
// line of RCCL 2.21.5. This never ran on an AMD GPU.
func TestBenchRCCL(t *testing.T) {
	table, err := filepath.Abs("../../internal/machine/nccltests/testdata/rccl-ae3e635-all_reduce.txt")
	if err != nil {
		t.Fatal(err)
	}
	program := `#!/bin/sh
case "$1" in --help) echo "USAGE: all_reduce_perf"; exit 0 ;; esac
log=$(echo "$NCCL_DEBUG_FILE" | sed 's/%h/host/; s/%p/1/')
echo "RCCL version : $(cat "${LD_LIBRARY_PATH%%:*}/librccl.so.1")-HEAD:9a0e6a1" > "$log"
[ "$HIP_VISIBLE_DEVICES" = 2,3 ] || exit 3
cat ` + table + "\n"
	t.Chdir(t.TempDir())
	place(t, map[string]string{"rocm/librccl.so.1": "2.21.5", "ours/librccl.so.1": "2.20.5", "tests/all_reduce_perf": program})
	bare(t)
	t.Setenv("HIP_VISIBLE_DEVICES", "2,3")
	t.Setenv("TMPDIR", t.TempDir())
	code, stdout, stderr := builder("bench", "--library", "rocm=rocm", "--library", "ours=ours", "--tests", "tests", "--gpus", "2",
		"--collectives", "all_reduce", "--min-bytes", "8", "--max-bytes", "128", "--factor", "4", "--rounds", "1")
	if code != 0 || !strings.Contains(stdout, "ours is release 2.20.5, rocm is 2.21.5: the ratio compares releases as much as builds\n") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := app.ReadBench("out/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Libraries[0].Version; got != "2.21.5-HEAD:9a0e6a1" || r.Conditions.Tests != "develop:ae3e635" || r.Conditions.Env["HIP_VISIBLE_DEVICES"] != "2,3" ||
		len(r.Host.GPUs) != 2 || r.Host.GPUs[0] != "AMD Instinct MI300X" || len(r.Collectives[0].Sizes) != 3 {
		t.Errorf("got %+v", r)
	}
}
