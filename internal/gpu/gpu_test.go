package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	fourGPUs = "NVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15\nNVIDIA H200, 570.86.15\n"
	topology = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
		"GPU0\t X \tNV18\tPIX\tSYS\tNODE\t0-31\t0\t\tN/A\n" +
		"GPU1\tNV18\t X \tNV18\tSYS\tNODE\t0-31\t0\t\tN/A\n" +
		"GPU2\tPIX\tNV18\t X \tNV18\tSYS\t0-31\t0\t\tN/A\n" +
		"GPU3\tSYS\tSYS\tNV18\t X \tSYS\t0-31\t0\t\tN/A\n" +
		"NIC0\tNODE\tNODE\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
)

func TestParse(t *testing.T) {
	h, err := parseList(fourGPUs)
	if err != nil || len(h.GPUs) != 4 || h.GPUs[3] != "NVIDIA H200" || h.Driver != "570.86.15" {
		t.Fatalf("parseList = %+v, %v", h, err)
	}
	h.links = parseTopology(topology, 4)
	for n, want := range map[int]string{0: "", 1: "", 2: "NV18", 3: "NV18, PIX", 4: "NV18, PIX, SYS", 9: "NV18, PIX, SYS"} {
		if got := h.Link(n); got != want {
			t.Errorf("Link(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, out := range []string{"", "\n", "No devices were found\n", "NVIDIA H200\n", ", 570\n"} {
		if h, err := parseList(out); err == nil {
			t.Errorf("parseList(%q) = %+v", out, h)
		}
	}
	if got := parseTopology(topology, 1); len(got) != 1 {
		t.Errorf("the first GPU of four: %v", got)
	}
	for name, out := range map[string]string{
		"empty": "", "cut": topology[:200], "other": "GPU0\tGPU1\n", "columns": "GPU0\tX\nGPU1\tX\nGPU2\tX\nGPU3\tX\n",
	} {
		if got := parseTopology(out, 4); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := Probe(t.Context()); !errors.Is(err, ErrNoDriver) {
		t.Errorf("without nvidia-smi: %v", err)
	}
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("echo NVIDIA-SMI has failed >&2\nexit 9\n")
	if _, err := Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 9: NVIDIA-SMI has failed") {
		t.Errorf("a driver that fails: %v", err)
	}
	script("[ $1 = topo ] && printf 'GPU0 X NV18 0\\nGPU1 NV18 X 0\\n' || printf 'NVIDIA H200, 570\\nNVIDIA H200, 570\\n'\n")
	if h, err := Probe(t.Context()); err != nil || len(h.GPUs) != 2 || h.Link(2) != "NV18" {
		t.Errorf("Probe = %+v, %v", h, err)
	}
}
