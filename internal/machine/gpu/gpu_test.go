package gpu

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

const (
	nvidiaList = "NVIDIA H200, 00000000:8D:00.0, 580.95.05\nNVIDIA H200, 00000000:95:00.0, 580.95.05\n"
	nvidiaHead = "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |\n"
	nvidiaTopo = "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
		"GPU0\t X \tNV18\tSYS\t0-47,96-143\t0\t\tN/A\nGPU1\tNV18\t X \tPIX\t0-47,96-143\t0\t\tN/A\nNIC0\tSYS\tPIX\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n"
	amdList = `{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}, "bus": {"bdf": "0000:0C:00.0"}, "driver": {"name": "amdgpu", "version": "6.14.14"}},
 {"gpu": 1, "asic": {"market_name": "Navi 31"}, "board": {"product_name": "AMD Radeon PRO W7900"}, "bus": {"bdf": "0000:22:00.0"}, "driver": {"version": "6.14.14"}}]}`
	rocmList = `{"card1": {"Card Series": "AMD INSTINCT MI250X", "PCI Bus": "0000:CE:00.0"}, "card0": {"Card series": "AMD INSTINCT MI250X", "PCI Bus": "0000:C9:00.0"}, "system": {"Driver version": "6.3.6"}}`
	rocmTopo = `{"system": {"(Topology) Link type between DRM devices 0 and 1": "XGMI"}}`
)

// answers maps command lines to the output of tools. A leading ! means a failed exit
// status.
type answers map[string]string

func (a answers) tool(_ context.Context, name string, args ...string) (string, error) {
	installed := false
	for line := range a {
		installed = installed || strings.HasPrefix(line, name)
	}
	text, ok := a[strings.Join(append([]string{name}, args...), " ")]
	switch {
	case !installed:
		return "", exec.ErrNotFound
	case !ok:
		return "unknown option", errors.New("exit status 1")
	case strings.HasPrefix(text, "!"):
		return text[1:], errors.New("exit status 9")
	}
	return text, nil
}

const (
	nvidiaQuery = "nvidia-smi --query-gpu=name,pci.bus_id,driver_version --format=csv,noheader"
	amdQuery    = "amd-smi static --asic --bus --board --driver --json"
	rocmQuery   = "rocm-smi --showproductname --showbus --showdriverversion --json"
	rocmTopoAsk = "rocm-smi --showtopotype --json"
)

func TestFind(t *testing.T) {
	h200 := []GPU{{"NVIDIA H200", "0000:8d:00.0"}, {"NVIDIA H200", "0000:95:00.0"}}
	for name, c := range map[string]struct {
		host answers
		want Host
		says string
	}{
		"two H200": {
			answers{nvidiaQuery: nvidiaList, "nvidia-smi": nvidiaHead, "nvidia-smi topo -m": nvidiaTopo},
			Host{GPUs: h200, Driver: "580.95.05", CUDA: "13.0", Links: [][]string{{"", "NV18"}, {"NV18", ""}}},
			"",
		},
		"no topology":      {answers{nvidiaQuery: nvidiaList}, Host{GPUs: h200, Driver: "580.95.05"}, ""},
		"no GPU":           {answers{nvidiaQuery: "!No devices were found\n"}, Host{}, ""},
		"driver not there": {answers{nvidiaQuery: "!NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"}, Host{}, "couldn't communicate"},
		"no CSV":           {answers{nvidiaQuery: "NVIDIA H200, x, y\n"}, Host{}, "is not a GPU"},
		"AMD": {
			answers{amdQuery: amdList, rocmTopoAsk: rocmTopo},
			Host{GPUs: []GPU{{"AMD Instinct MI300X", "0000:0c:00.0"}, {"AMD Radeon PRO W7900", "0000:22:00.0"}}, AMD: true, Driver: "6.14.14", Links: [][]string{{"", "XGMI"}, {"XGMI", ""}}},
			"",
		},
		"AMD before 7":  {answers{amdQuery: `[{"asic": {"market_name": "AMD Instinct MI300X"}, "bus": {"bdf": "0000:0c:00.0"}}]`}, Host{AMD: true, GPUs: []GPU{{"AMD Instinct MI300X", "0000:0c:00.0"}}}, ""},
		"AMD, no JSON":  {answers{amdQuery: "oops"}, Host{}, "amd-smi"},
		"ROCm":          {answers{rocmQuery: rocmList}, Host{AMD: true, GPUs: []GPU{{"AMD INSTINCT MI250X", "0000:c9:00.0"}, {"AMD INSTINCT MI250X", "0000:ce:00.0"}}, Driver: "6.3.6"}, ""},
		"ROCm, no JSON": {answers{rocmQuery: "WARNING: No JSON data to report"}, Host{}, "rocm-smi"},
		"no tool":       {answers{}, Host{}, ErrNoTool.Error()},
	} {
		got, err := Find(t.Context(), c.host.tool)
		check.That(t, (err == nil) == (c.says == "") && (err == nil || strings.Contains(err.Error(), c.says)),
			"%s: got %v, want %q", name, err, c.says)
		check.Same(t, name, c.want, got)
	}
}

func TestParseTopology(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		n    int
		want [][]string
	}{
		"three": {"\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tSYS\nGPU1\tNV4\tX\tPIX\nGPU2\tSYS\tPIX\tX\n", 3, [][]string{{"", "NV4", "SYS"}, {"NV4", "", "PIX"}, {"SYS", "PIX", ""}}},
		"one":   {"\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n", 1, [][]string{{""}}},
		"fewer": {nvidiaTopo, 4, nil},
		"none":  {"", 2, nil},
		"cut":   {nvidiaTopo[:90], 2, nil},
	} {
		check.Same(t, name, c.want, parseTopology(c.text, c.n))
	}
}

func TestParseROCmTopology(t *testing.T) {
	for _, text := range []string{"", "{}", `{"system": {"(Topology) Link type between DRM devices 0 and 9": "XGMI"}}`, `{"system": {"x": "XGMI"}}`} {
		got := parseROCmTopology(text, 2)
		check.That(t, got == nil, "%s: got %v", text, got)
	}
}

func TestLinked(t *testing.T) {
	h := Host{GPUs: []GPU{{BusID: "0000:8d:00.0"}, {BusID: "0000:95:00.0"}, {BusID: "0000:a0:00.0"}}, Links: [][]string{{"", "NV18", "SYS"}, {"NV18", "", "SYS"}, {"SYS", "SYS", ""}}}
	for name, c := range map[string]struct {
		gpus       []string
		all, known bool
		worst      string
	}{
		"NVLink":   {[]string{"00000000:8D:00.0", "0000:95:00.0"}, true, true, ""},
		"not all":  {[]string{"0000:8d:00.0", "0000:95:00.0", "0000:a0:00.0"}, false, true, "SYS"},
		"one":      {[]string{"0000:8d:00.0"}, false, false, ""},
		"stranger": {[]string{"0000:8d:00.0", "0000:01:00.0"}, false, false, ""},
		"unnamed":  {[]string{"", ""}, false, false, ""},
	} {
		all, worst, known := h.Linked(c.gpus)
		check.That(t, all == c.all && worst == c.worst && known == c.known, "%s: got %v %q %v", name, all, worst, known)
	}
	_, _, known := (Host{GPUs: h.GPUs}).Linked([]string{"0000:8d:00.0", "0000:95:00.0"})
	check.That(t, !known, "links that nobody told are known")
}

func TestVisible(t *testing.T) {
	h := Host{GPUs: []GPU{{BusID: "a"}, {BusID: "b"}, {BusID: "c"}}, Links: [][]string{{"", "NV1", "NV2"}, {"NV1", "", "SYS"}, {"NV2", "SYS", ""}}, Driver: "5"}
	for list, want := range map[string]Host{
		"2,0":      {GPUs: []GPU{{BusID: "c"}, {BusID: "a"}}, Links: [][]string{{"", "NV2"}, {"NV2", ""}}, Driver: "5"},
		"1,9,0":    {GPUs: []GPU{{BusID: "b"}}, Links: [][]string{{""}}, Driver: "5"},
		"-1":       {Driver: "5"},
		"":         {Driver: "5"},
		"GPU-1a2b": h,
	} {
		check.Same(t, list, want, h.visible(list))
	}
}

func TestVisibleTo(t *testing.T) {
	// Some product names lack the vendor.
	amd := Host{AMD: true, GPUs: []GPU{{"Instinct MI210", "a"}, {"Instinct MI210", "b"}, {"Navi 31", "c"}}}
	nvidia := Host{GPUs: []GPU{{"NVIDIA H200", "a"}, {"NVIDIA H200", "b"}, {"NVIDIA H200", "c"}}}
	for _, c := range []struct {
		host Host
		env  map[string]string
		want string
	}{
		{amd, nil, "abc"},
		{amd, map[string]string{"HIP_VISIBLE_DEVICES": "1"}, "b"},
		{amd, map[string]string{"CUDA_VISIBLE_DEVICES": "2,0"}, "ca"},
		{amd, map[string]string{"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "2"}, "b"},
		{amd, map[string]string{"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": ""}, "abc"},
		{amd, map[string]string{"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, "c"},
		{amd, map[string]string{"ROCR_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "2"}, ""}, // out of range after the renumbering
		{nvidia, map[string]string{"CUDA_VISIBLE_DEVICES": "1"}, "b"},
		{nvidia, map[string]string{"CUDA_VISIBLE_DEVICES": ""}, ""},
		{nvidia, map[string]string{"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "2"}, "abc"},
	} {
		var seen []string
		for _, g := range c.host.VisibleTo(c.env).GPUs {
			seen = append(seen, g.BusID)
		}
		check.Same(t, fmt.Sprint(c.env), c.want, strings.Join(seen, ""))
	}
}

func TestLimit(t *testing.T) {
	for name, want := range map[string]float64{
		"NVIDIA H200": 900, "NVIDIA H100 80GB HBM3": 900, "NVIDIA H100 PCIe": 600, "NVIDIA H20": 900, "NVIDIA A100-SXM4-80GB": 600,
		"NVIDIA GB200": 1800, "NVIDIA B200": 1800, "NVIDIA L40S": 64, "NVIDIA A10": 64, "AMD Instinct MI300X": 896,
		"AMD Instinct MI300A": 768, "AMD Instinct MI355X": 1075.2, "AMD INSTINCT MI250X": 800, "AMD Instinct MI210": 300, "AMD Instinct MI100": 276,
	} {
		got, known := Limit([]GPU{{Name: name}, {Name: name}})
		check.That(t, known && got == want, "%s: got %v, %v, want %v", name, got, known, want)
	}
	got, known := Limit([]GPU{{Name: "a GPU of tomorrow"}, {Name: "NVIDIA H200"}})
	check.That(t, !known && got == 1800, "got %v, %v", got, known)
	_, known = Limit(nil)
	check.That(t, !known, "no GPUs have links")
}

// Partitions of one GPU communicate inside it.
func TestLimitOfPartitions(t *testing.T) {
	// In CPX mode, the partitions of an MI300X are functions of one device. The kernel
	// reports 819 GB/s between two of them (testdata/topo-mi300-cpx of
	// ROCm/k8s-device-plugin).
	parts := []GPU{{Name: "AMD Instinct MI300X", BusID: "0000:05:00.0"}, {Name: "AMD Instinct MI300X", BusID: "0000:05:00.1"}}
	got, known := Limit(parts)
	check.That(t, !known && got >= 819.2, "two partitions: got %v, %v", got, known)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{nvidiaList, nvidiaHead, nvidiaTopo, amdList, rocmList, rocmTopo} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseNVIDIA(text)
		must.Hold(t, err == nil || len(h.GPUs) == 0, "an error and GPUs")
		_, _ = parseAMD(text)
		_, _ = parseROCm(text)
		_ = parseCUDA(text)
		for _, links := range [][][]string{parseTopology(text, 2), parseROCmTopology(text, 2)} {
			must.Hold(t, links == nil || len(links) == 2 && len(links[0]) == 2 && len(links[1]) == 2, "got %v", links)
		}
	})
}
