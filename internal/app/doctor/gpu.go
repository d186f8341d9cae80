package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/machine/fabric"
	"builder/internal/machine/gpu"
)

// moduleVersion matches the version in the first line of /proc/driver/nvidia/version:
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun …
var moduleVersion = regexp.MustCompile(`Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)`)

const nvidiaVersion = "/proc/driver/nvidia/version"

// nvidia compares three sources: the PCI devices, the kernel module and nvidia-smi.
func nvidia(ctx context.Context, e *exam) Finding {
	tools, devices := e.tools(ctx), len(e.pci().GPUs(fabric.NVIDIA))
	module := ""
	if m := moduleVersion.FindStringSubmatch(e.Says(nvidiaVersion)); m != nil {
		module = m[1]
	}
	asked := tools.tool == "nvidia-smi"
	silent := !asked && tools.err != nil && !errors.Is(tools.err, gpu.ErrNoTool) && strings.Contains(tools.err.Error(), "nvidia-smi")
	switch {
	case asked && len(tools.GPUs) > 0:
		return e.judgeNVIDIA(tools, devices)
	case silent:
		return fail("%v", tools.err).remedy("restart the host after an update of the driver, or install the driver again")
	case module != "" && !asked:
		return warn("driver %s; the highest CUDA is unknown without nvidia-smi in PATH", module).
			remedy("install the tools of the same version as the driver")
	case devices > 0:
		return warn("%s on the bus, no driver", count(devices, "GPU")).remedy("install NVIDIA's driver, or load the module nvidia")
	case e.pci().Err != nil && !asked:
		return unknown("%s; no driver, no nvidia-smi", because(e.pci().Err))
	}
	return none("no NVIDIA GPU")
}

// judgeNVIDIA compares the GPUs of nvidia-smi with the PCI devices, and the highest
// CUDA version with the recipe's.
func (e *exam) judgeNVIDIA(tools gpuTools, devices int) Finding {
	highest := tools.CUDA
	if highest == "" {
		highest = "unknown"
	}
	text := fmt.Sprintf("%s, driver %s, highest CUDA %s", models(tools.Host), tools.Driver, highest)
	r := e.work.Recipe
	switch {
	case devices > len(tools.GPUs):
		return warn("%s; %d on the bus", text, devices).remedy("look for the others with `nvidia-smi` and in the kernel log (Xid)")
	case r != nil && r.CUDA != "" && tools.CUDA != "" && elf.CompareVersions(major(r.CUDA), major(tools.CUDA)) > 0:
		return warn("%s; the cell is for CUDA %s: this host can build it, but not run it", text, r.CUDA).
			remedy("install a newer driver, or choose --cuda %s", major(tools.CUDA))
	}
	return ok("%s", text)
}

// major returns the major version: a driver supports every minor release of its CUDA
// version.
func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}

// models counts the GPUs by name.
func models(h gpu.Host) string {
	var names []string
	for _, g := range h.GPUs {
		names = append(names, g.Name)
	}
	return tally(names)
}

// A rocmSeries is one line of AMD's support matrix: a series of its driver.
type rocmSeries struct {
	module  string // prefix of /sys/module/amdgpu/version
	driver  string // AMD's name of the driver release
	highest string // newest supported ROCm
}

// rocmSeriesTable is AMD's user and kernel-space support matrix as of 2025-09-17
// (rocm.docs.amd.com, install-on-linux/reference/user-kernel-space-compat-matrix), with
// the module version of each series. The version of the package amdgpu-dkms contains
// the release: 6.8.5.60200 belongs to 6.2.
var rocmSeriesTable = []rocmSeries{
	{"6.2", "5.7", "6.1"},
	{"6.3", "6.0", "6.2"},
	{"6.7", "6.1", "6.4"},
	{"6.8", "6.2", "7.0"},
	{"6.10", "6.3", "7.0"},
	{"6.12", "6.4", "7.0"},
	{"6.14", "30.10", "7.0"},
}

// highestROCm finds the series of a module version.
func highestROCm(module string) (rocmSeries, bool) {
	parts := strings.SplitN(module, ".", 3)
	if len(parts) < 2 {
		return rocmSeries{}, false
	}
	i := slices.IndexFunc(rocmSeriesTable, func(s rocmSeries) bool { return s.module == parts[0]+"."+parts[1] })
	if i < 0 {
		return rocmSeries{}, false
	}
	return rocmSeriesTable[i], true
}

const amdVersion = "/sys/module/amdgpu/version"

// amd compares the PCI devices, the nodes of the kernel's compute driver, and the
// module.
func amd(_ context.Context, e *exam) Finding {
	devices, nodes := len(e.pci().GPUs(fabric.AMD)), e.kfd()
	loaded, computes := e.Exists("/sys/module/amdgpu"), e.Exists("/sys/class/kfd/kfd")
	switch {
	case len(nodes) > 0:
		return e.judgeAMD(nodes, devices)
	case computes && devices > 0:
		return warn("%s on the bus, none usable for computing", count(devices, "GPU")).
			remedy("look in the kernel log for amdgpu and kfd")
	case devices > 0 && !loaded:
		return warn("%s on the bus, no driver", count(devices, "GPU")).remedy("install amdgpu-dkms, or load the module amdgpu")
	case devices > 0:
		return warn("%s on the bus, and no /sys/class/kfd", count(devices, "GPU")).remedy("use a kernel with CONFIG_HSA_AMD")
	case e.pci().Err != nil:
		return unknown("%s; no /sys/class/kfd", because(e.pci().Err))
	}
	return none("no AMD GPU")
}

func (e *exam) judgeAMD(nodes []fabric.Node, devices int) Finding {
	var targets []string
	for _, n := range nodes {
		targets = append(targets, n.Target)
	}
	text := tally(targets)
	module := e.Says(amdVersion)
	series, known := highestROCm(module)
	switch {
	case module == "":
		text += ", the kernel's own driver, highest ROCm unknown: AMD documents it only for its own driver"
	case !known:
		text += fmt.Sprintf(", driver %s, highest ROCm unknown", module)
	default:
		text += fmt.Sprintf(", driver %s (%s), highest ROCm %s", module, series.driver, series.highest)
	}
	r := e.work.Recipe
	switch {
	case devices > len(nodes):
		return warn("%s; %d on the bus", text, devices).remedy("look for the others in the kernel log")
	case !e.Exists("/dev/kfd"):
		return warn("%s; no /dev/kfd", text).remedy("give the container the devices /dev/kfd and /dev/dri")
	case known && r != nil && r.ROCm != "" && elf.CompareVersions(r.ROCm, series.highest) > 0:
		return warn("%s; the cell is for ROCm %s, which this driver does not support", text, r.ROCm).
			remedy("install a newer amdgpu-dkms, or choose --rocm '<=%s'", series.highest)
	}
	return ok("%s", text)
}
