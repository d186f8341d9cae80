package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/machine/fabric"
)

// peersOfNVIDIA are the files checked by NCCL. They exist if a kernel module gives NICs
// access to GPU memory.
var peersOfNVIDIA = []struct{ file, name string }{
	{"/sys/module/nvidia_peermem/version", "nvidia_peermem"},
	{"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
	{"/sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem"},
}

// A peerOfAMD is a directory with the same meaning for RCCL and AMD's driver, if it
// contains a file version.
type peerOfAMD struct {
	dir   string
	since string // first RCCL release to look there, as its NCCL version; "" for all
}

// peersOfAMD are in the order of RCCL's search.
var peersOfAMD = []peerOfAMD{
	{"/sys/kernel/mm/memory_peers/amdkfd", ""},
	{"/sys/kernel/memory_peers/amdkfd", "2.21.5"},
	{"/sys/memory_peers/amdkfd", "2.21.5"},
}

func (p peerOfAMD) there(e *exam) bool { return e.Exists(p.dir + "/version") }

// peerMemory checks how a NIC can access the memory of a GPU: by a peer memory module,
// or by the kernel's DMA-BUF.
func peerMemory(ctx context.Context, e *exam) Finding {
	forNVIDIA := e.Exists(nvidiaVersion) || e.tools(ctx).tool == "nvidia-smi" && len(e.tools(ctx).GPUs) > 0
	forAMD := len(e.kfd()) > 0
	switch {
	case !forNVIDIA && !forAMD && !e.Exists("/sys/class"):
		return unknown("/sys/class cannot be read")
	case !forNVIDIA && !forAMD:
		return none("no GPU with a driver")
	case len(e.Names(fabric.RDMADir)) == 0:
		return none("no RDMA device")
	}
	for _, p := range peersOfNVIDIA {
		if e.Exists(p.file) {
			return ok("%s is loaded", p.name)
		}
	}
	if slices.ContainsFunc(peersOfAMD, func(p peerOfAMD) bool { return p.there(e) }) {
		return ok("amdkfd is loaded")
	}
	if forNVIDIA {
		return e.dmabufOfNVIDIA()
	}
	return e.dmabufOfAMD()
}

// kernelSince reports whether the kernel is the given version or newer.
func (e *exam) kernelSince(version string) bool {
	numbers, _, _ := strings.Cut(e.Kernel(), "-")
	return numbers != "" && elf.CompareVersions(numbers, version) >= 0
}

// dmabufOfNVIDIA checks for the open kernel module, and for DMA-BUF export to NICs,
// which needs kernel 5.12 or newer.
func (e *exam) dmabufOfNVIDIA() Finding {
	open := strings.Contains(e.Says(nvidiaVersion), "Open Kernel Module")
	switch {
	case !e.Exists(nvidiaVersion):
		return unknown("no nvidia_peermem; %s is missing, so it is unknown whether the module is the open one", nvidiaVersion)
	case open && e.Kernel() == "":
		return unknown("no nvidia_peermem; the release of the kernel is unknown")
	case open && e.kernelSince("5.12"):
		return ok("DMA-BUF: NVIDIA's open module on kernel %s", e.Kernel())
	}
	why := "NVIDIA's module is not the open one"
	if open {
		why = fmt.Sprintf("kernel %s is older than 5.12", e.Kernel())
	}
	return warn("no nvidia_peermem and no DMA-BUF: %s", why).
		remedy("run modprobe nvidia_peermem, or use NVIDIA's open kernel module on Linux 5.12 or newer")
}

// dmabufOfAMD checks the kernel like RCCL does.
func (e *exam) dmabufOfAMD() Finding {
	lacking, known := e.lacksForDMABUF()
	switch {
	case !known:
		return unknown("no module for peer memory; the options of kernel %s cannot be read", e.Kernel())
	case len(lacking) == 0:
		return ok("DMA-BUF: kernel %s has the options that RCCL needs; NCCL_DMABUF_ENABLE=1 turns it on", e.Kernel())
	}
	return warn("no module for peer memory, and kernel %s lacks %s", e.Kernel(), strings.Join(lacking, ", ")).
		remedy("install amdgpu-dkms with the RDMA stack of the NIC's vendor, or use a kernel with these options")
}

// lacksForDMABUF returns the kernel options required by RCCL and missing from this
// kernel. known is false if the options cannot be read.
func (e *exam) lacksForDMABUF() (lacking []string, known bool) {
	for _, name := range []string{"CONFIG_DMABUF_MOVE_NOTIFY", "CONFIG_PCI_P2PDMA"} {
		on, known := e.KernelOption(name)
		if !known {
			return nil, false
		}
		if !on {
			lacking = append(lacking, name)
		}
	}
	return lacking, true
}
