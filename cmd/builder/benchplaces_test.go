package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host with two releases of ROCm, of which /opt/rocm is one, and the programs in
// it; a run of the recipe goes before them.
func TestInstalledRCCL(t *testing.T) {
	place(t, map[string]string{
		"host/opt/rocm-6.4.1/lib/librccl.so.1": "6.4", "host/opt/rocm-6.2.0/lib/librccl.so.1": "6.2", "host/opt/rocm-6.4.1/bin/all_reduce_perf": "#!",
	})
	if err := os.Symlink("rocm-6.4.1", "host/opt/rocm"); err != nil {
		t.Fatal(err)
	}
	libraries, soname, err := findLibraries([]string{"rccl", "old=host/opt/rocm-6.2.0/lib"}, t.TempDir(), "host")
	if err != nil || soname != "librccl.so.1" || libraries[0].Label != "rccl" || libraries[0].Path != "host/opt/rocm/lib/librccl.so.1" || libraries[0].SHA256 == libraries[1].SHA256 {
		t.Errorf("%+v, %q, %v", libraries, soname, err)
	}
	if tests, err := testsOf("", soname, "out", "host"); err != nil || tests != "host/opt/rocm/bin" {
		t.Errorf("%q, %v", tests, err)
	}
	wheel := "out/rccl-tests-20240910+rocm6.2-gfx942/rccl_tests-20240910-py3-none-linux_x86_64.whl"
	if err := os.MkdirAll(filepath.Dir(wheel), 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("host/opt/rocm/bin/all_reduce_perf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wheel, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if tests, err := testsOf("", soname, "elsewhere", "host"); err != nil || tests != wheel {
		t.Errorf("%q, %v", tests, err)
	}
	if tests, err := testsOf("said", soname, "out", "host"); err != nil || tests != "said" {
		t.Errorf("%q, %v", tests, err)
	}
}

// Of several none is chosen.
func TestSeveralInstalled(t *testing.T) {
	place(t, map[string]string{
		"host/opt/rocm-6.4.1/lib/librccl.so.1": "6.4", "host/opt/rocm-6.2.0/lib/librccl.so.1": "6.2",
		"out/rccl-tests-1+rocm6.2-gfx90a/a.whl": "", "out/rccl-tests-1+rocm6.2-gfx942/b.whl": "",
	})
	if _, _, err := findLibraries([]string{"rccl"}, t.TempDir(), "host"); err == nil || !strings.Contains(err.Error(), "rocm-6.4.1/lib/librccl.so.1 are several") {
		t.Errorf("got %v", err)
	}
	if _, err := testsOf("", "librccl.so.1", "out", "host"); err == nil || !strings.Contains(err.Error(), "b.whl are several") {
		t.Errorf("got %v", err)
	}
	if _, err := testsOf("", "librccl.so.1", "nowhere/out", "nowhere"); err != nil && !strings.Contains(err.Error(), "several") {
		t.Errorf("got %v", err)
	}
}

// The directory of a cell stands for its wheel.
func TestCellOfLibrary(t *testing.T) {
	place(t, map[string]string{"out/cell/nvidia_nccl_cu13-2.29.7-py3-none-any.whl": ncclWheel, "out/tests/nccl_tests-2.17.6-py3-none-any.whl": testsWheel})
	libraries, _, err := findLibraries([]string{"ours=out/cell"}, t.TempDir(), "")
	if err != nil || libraries[0].Soname != "libnccl.so.2" || libraries[0].Path != "out/cell" {
		t.Errorf("%+v, %v", libraries, err)
	}
	if dir, err := programDir("out/tests", t.TempDir()); err != nil || len(collectivesIn(dir)) == 0 {
		t.Errorf("%q, %v", dir, err)
	}
}

// A stand-in for rccl-tests prints what a release of it prints, and a stand-in for
// RCCL says what RCCL 2.21.5 says: the real runner starts it, with the GPUs that
// are visible here, and reads both. No GPU of AMD has run this.
func TestBenchRCCL(t *testing.T) {
	table, err := filepath.Abs("../../internal/nccltests/testdata/rccl-ae3e635-all_reduce.txt")
	if err != nil {
		t.Fatal(err)
	}
	program := `#!/bin/sh
case "$1" in --help) echo "USAGE: all_reduce_perf"; exit 0 ;; esac
log=$(echo "$NCCL_DEBUG_FILE" | sed 's/%h/host/; s/%p/1/')
echo "RCCL version : $(cat "${LD_LIBRARY_PATH%%:*}/librccl.so.1")-HEAD:9a0e6a1" > "$log"
[ "$HIP_VISIBLE_DEVICES" = 2,3 ] || exit 3
cat ` + table + "\n"
	place(t, map[string]string{"rocm/librccl.so.1": "2.21.5", "ours/librccl.so.1": "2.20.5", "tests/all_reduce_perf": program})
	bare(t)
	t.Setenv("HIP_VISIBLE_DEVICES", "2,3")
	t.Setenv("TMPDIR", t.TempDir())
	code, stdout, stderr := builder("bench", "--library", "rocm=rocm", "--library", "ours=ours", "--tests", "tests", "--gpus", "2",
		"--collectives", "all_reduce", "--min-bytes", "8", "--max-bytes", "128", "--factor", "4", "--rounds", "1")
	if code != 0 || !strings.Contains(stdout, "ours is release 2.20.5, rocm is 2.21.5: the ratio compares releases as much as builds\n") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r, err := readBench("out/bench.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Libraries[0].Version; got != "2.21.5-HEAD:9a0e6a1" || r.Conditions.Tests != "develop:ae3e635" || r.Conditions.Env["HIP_VISIBLE_DEVICES"] != "2,3" ||
		len(r.Host.GPUs) != 2 || r.Host.GPUs[0] != "AMD Instinct MI300X" || len(r.Collectives[0].Sizes) != 3 {
		t.Errorf("got %+v", r)
	}
}
