package doctor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"builder/internal/base/size"
	"builder/internal/files/elf"
	"builder/internal/machine/gpu"
)

// The files in which the drivers give their versions.
const (
	nvidiaVersion = "/proc/driver/nvidia/version"
	amdVersion    = "/sys/module/amdgpu/version" // only AMD's own driver has one
	amdModule     = "/sys/module/amdgpu"
)

// moduleVersion matches the version in the first line of /proc/driver/nvidia/version:
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun …
var moduleVersion = regexp.MustCompile(`Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)`)

// gpus compares three sources: the vendors' tools, the kernel modules and the PCI devices.
func gpus(_ context.Context, e *exam) Finding {
	tools, err := e.tools()
	devices := len(e.pci().gpus(vendorNVIDIA, vendorAMD))
	switch driver := e.driver(); {
	case len(tools.GPUs) > 0:
		return e.judgeGPUs(tools)
	case err != nil && !errors.Is(err, gpu.ErrNoTool):
		return fail("%v", err).remedy("restart the host after an update of the driver, or install the driver again")
	case driver != "" && err != nil:
		return warn("%s; the GPUs are unknown without the tool of the vendor in PATH", driver).
			remedy("install nvidia-smi, amd-smi or rocm-smi, of the same version as the driver")
	case driver != "" && devices > 0:
		return warn("%s on the bus, and the tool of the driver finds none", size.Count(devices, "GPU")).
			remedy("look in the kernel log for errors of the driver")
	case devices > 0:
		return warn("%s on the bus, no driver", size.Count(devices, "GPU")).
			remedy("install the driver of the vendor, or load its module: nvidia or amdgpu")
	case e.pci().err != nil:
		return unknown("%s; no driver, no tool", because(e.pci().err))
	}
	return none("no GPU")
}

// driver names the loaded driver of GPUs, or returns "".
func (e *exam) driver() string {
	if m := moduleVersion.FindStringSubmatch(e.Says(nvidiaVersion)); m != nil {
		return "NVIDIA's driver " + m[1]
	}
	if e.Exists(amdModule) {
		return strings.TrimSpace("AMD's driver " + e.Says(amdVersion))
	}
	return ""
}

// judgeGPUs compares the GPUs of a tool with the PCI devices, and the driver with the
// recipe.
func (e *exam) judgeGPUs(h gpu.Host) Finding {
	var names []string
	for _, g := range h.GPUs {
		names = append(names, g.Name)
	}
	text := fmt.Sprintf("%s, driver %s", tally(names), h.Driver)
	vendor, release := vendorNVIDIA, ""
	if h.AMD {
		vendor = vendorAMD
	} else if release = h.CUDA; release == "" {
		text += ", highest CUDA unknown"
	} else {
		text += ", highest CUDA " + release
	}
	r := e.work.Recipe
	switch devices := len(e.pci().gpus(vendor)); {
	case devices > len(h.GPUs):
		return warn("%s; %d on the bus", text, devices).remedy("look for the others with the tool and in the kernel log")
	case h.AMD && !e.Exists("/dev/kfd"):
		return warn("%s; no /dev/kfd", text).remedy("give the container the devices /dev/kfd and /dev/dri")
	case r != nil && r.CUDA != "" && release != "" && elf.CompareVersions(major(r.CUDA), major(release)) > 0:
		return warn("%s; the cell is for CUDA %s: this host can build it, but not run it", text, r.CUDA).
			remedy("install a newer driver, or choose --cuda %s", major(release))
	}
	return ok("%s", text)
}

// major returns the major version: a driver supports every minor release of its CUDA
// version.
func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return first
}
