package doctor

import (
	"context"
	"fmt"
	"strings"

	"builder/internal/files/elf"
)

// peerFiles are the files checked by NCCL and RCCL. They exist if a kernel module gives
// NICs access to GPU memory.
var peerFiles = []struct{ file, name string }{
	{"/sys/module/nvidia_peermem/version", "nvidia_peermem"},
	{"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
	{"/sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem"},
	{"/sys/kernel/mm/memory_peers/amdkfd/version", "amdkfd"},
	{"/sys/kernel/memory_peers/amdkfd/version", "amdkfd"},
	{"/sys/memory_peers/amdkfd/version", "amdkfd"},
}

// peerMemory checks how a NIC can access the memory of a GPU: by a peer memory module,
// or by the kernel's DMA-BUF.
func peerMemory(_ context.Context, e *exam) Finding {
	gpus, _ := e.tools() // the kernel names NVIDIA's driver without a tool
	nvidia := e.Exists(nvidiaVersion) || len(gpus.GPUs) > 0 && !gpus.AMD
	switch {
	case !e.Exists("/sys/class"):
		return unknown("/sys/class cannot be read")
	case !nvidia && !gpus.AMD:
		return none("no GPU with a driver")
	case len(e.Names(rdmaDir)) == 0:
		return none("no RDMA device")
	}
	for _, p := range peerFiles {
		if e.Exists(p.file) {
			return ok("%s is loaded", p.name)
		}
	}
	if nvidia {
		return e.dmabufOfNVIDIA()
	}
	return unknown("no module for peer memory; whether kernel %s has DMA-BUF for AMD is in its options", e.Kernel()).
		remedy("look for CONFIG_DMABUF_MOVE_NOTIFY=y and CONFIG_PCI_P2PDMA=y in /boot/config-%s, or install amdgpu-dkms with the RDMA stack of the NIC's vendor", e.Kernel())
}

// dmabufOfNVIDIA checks for the open kernel module, and for DMA-BUF export to NICs,
// which needs kernel 5.12 or newer.
func (e *exam) dmabufOfNVIDIA() Finding {
	open := strings.Contains(e.Says(nvidiaVersion), "Open Kernel Module")
	numbers, _, _ := strings.Cut(e.Kernel(), "-")
	why := "NVIDIA's module is not the open one"
	switch {
	case !e.Exists(nvidiaVersion):
		return unknown("no nvidia_peermem; %s is missing, so it is unknown whether the module is the open one", nvidiaVersion)
	case open && numbers == "":
		return unknown("no nvidia_peermem; the release of the kernel is unknown")
	case open && elf.CompareVersions(numbers, "5.12") >= 0:
		return ok("DMA-BUF: NVIDIA's open module on kernel %s", e.Kernel())
	case open:
		why = fmt.Sprintf("kernel %s is older than 5.12", e.Kernel())
	}
	return warn("no nvidia_peermem and no DMA-BUF: %s", why).
		remedy("run modprobe nvidia_peermem, or use NVIDIA's open kernel module on Linux 5.12 or newer")
}
