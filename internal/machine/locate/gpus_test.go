package locate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/machine/bench"
)

// smi replaces nvidia-smi and the rest of PATH.
func smi(t *testing.T, list, topology string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	script := "#!/bin/sh\ncase $1 in\n--query*) printf '" + list + "' ;;\ntopo) printf '" + topology + "' ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

const threeGPUs = "NVIDIA H200, 00000000:8D:00.0, 570.86.15\\nNVIDIA H200, 00000000:91:00.0, 570.86.15\\nNVIDIA A30, 00000000:95:00.0, 570.86.15\\n"

func TestFindGPUs(t *testing.T) {
	smi(t, threeGPUs, "GPU0 X NV18 SYS 0\\nGPU1 NV18 X PIX 0\\nGPU2 SYS PIX X 0\\n")
	h200, a30 := "NVIDIA H200", "NVIDIA A30"
	for wanted, want := range map[int]GPUs{
		1: {1, bench.Host{GPUs: []string{h200}, Driver: "570.86.15"}, 900},
		2: {2, bench.Host{GPUs: []string{h200, h200}, Driver: "570.86.15", Link: "NV18"}, 900},
		0: {3, bench.Host{GPUs: []string{h200, h200, a30}, Driver: "570.86.15", Link: "NV18, PIX, SYS"}, 900},
	} {
		got, err := FindGPUs(t.Context(), wanted, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%d GPUs: %v (-want +got):\n%s", wanted, err, diff)
		}
	}
	if _, err := FindGPUs(t.Context(), 4, nil); err == nil || !strings.Contains(err.Error(), "4 requested, this host has 3") {
		t.Errorf("four of three: %v", err)
	}
}

func TestFindNoGPU(t *testing.T) {
	smi(t, "No devices were found\\n", "")
	if _, err := FindGPUs(t.Context(), 0, nil); err == nil || !strings.Contains(err.Error(), "1 requested, this host has 0") {
		t.Errorf("a driver without a GPU: %v", err)
	}
	smi(t, threeGPUs, "no such option\\n")
	if got, err := FindGPUs(t.Context(), 2, nil); err != nil || got.Host.Link != "" || got.Count != 2 {
		t.Errorf("a tool that does not know the links: %+v, %v", got, err)
	}
	t.Setenv("PATH", t.TempDir())
	if got, err := FindGPUs(t.Context(), 2, nil); err != nil || got.Count != 2 || got.Limit != 0 || len(got.Host.GPUs) > 0 {
		t.Errorf("no tool, and a number: %+v, %v", got, err)
	}
	if _, err := FindGPUs(t.Context(), 0, nil); err == nil || !strings.Contains(err.Error(), "counting the GPUs") {
		t.Errorf("no tool, and no number: %v", err)
	}
}
