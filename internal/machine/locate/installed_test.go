package locate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The host has two releases of ROCm, and /opt/rocm is a link to one of them with the
// programs. Programs from a run of the recipe have precedence.
func TestInstalledRCCL(t *testing.T) {
	place(t, map[string]string{
		"host/opt/rocm-6.4.1/lib/librccl.so.1": "6.4", "host/opt/rocm-6.2.0/lib/librccl.so.1": "6.2", "host/opt/rocm-6.4.1/bin/all_reduce_perf": "#!",
	})
	if err := os.Symlink("rocm-6.4.1", "host/opt/rocm"); err != nil {
		t.Fatal(err)
	}
	libraries, soname, err := Libraries([]string{"rccl", "old=host/opt/rocm-6.2.0/lib"}, t.TempDir(), "host")
	if err != nil || soname != "librccl.so.1" || libraries[0].Label != "rccl" || libraries[0].Path != "host/opt/rocm/lib/librccl.so.1" || libraries[0].SHA256 == libraries[1].SHA256 {
		t.Errorf("%+v, %q, %v", libraries, soname, err)
	}
	if tests, err := Tests("", soname, "out", "host"); err != nil || tests != "host/opt/rocm/bin" {
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
	if tests, err := Tests("", soname, "elsewhere", "host"); err != nil || tests != wheel {
		t.Errorf("%q, %v", tests, err)
	}
	if tests, err := Tests("said", soname, "out", "host"); err != nil || tests != "said" {
		t.Errorf("%q, %v", tests, err)
	}
}

// With several matches none is selected.
func TestSeveralInstalled(t *testing.T) {
	place(t, map[string]string{
		"host/opt/rocm-6.4.1/lib/librccl.so.1": "6.4", "host/opt/rocm-6.2.0/lib/librccl.so.1": "6.2",
		"out/rccl-tests-1+rocm6.2-gfx90a/a.whl": "", "out/rccl-tests-1+rocm6.2-gfx942/b.whl": "",
	})
	if _, _, err := Libraries([]string{"rccl"}, t.TempDir(), "host"); err == nil || !strings.Contains(err.Error(), "rocm-6.4.1/lib/librccl.so.1; name one") {
		t.Errorf("got %v", err)
	}
	if _, err := Tests("", "librccl.so.1", "out", "host"); err == nil || !strings.Contains(err.Error(), "b.whl; name one") {
		t.Errorf("got %v", err)
	}
	if _, err := Tests("", "librccl.so.1", "nowhere/out", "nowhere"); err != nil && !strings.Contains(err.Error(), "several") {
		t.Errorf("got %v", err)
	}
}

// The directory of a cell selects its wheel.
func TestCellOfLibrary(t *testing.T) {
	place(t, map[string]string{"out/cell/nvidia_nccl_cu13-2.29.7-py3-none-any.whl": ncclWheel, "out/tests/nccl_tests-2.17.6-py3-none-any.whl": testsWheel})
	libraries, _, err := Libraries([]string{"ours=out/cell"}, t.TempDir(), "")
	if err != nil || libraries[0].Soname != "libnccl.so.2" || libraries[0].Path != "out/cell" {
		t.Errorf("%+v, %v", libraries, err)
	}
	if dir, err := programDir("out/tests", t.TempDir()); err != nil || len(collectivesIn(dir)) == 0 {
		t.Errorf("%q, %v", dir, err)
	}
}
