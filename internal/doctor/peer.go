package doctor

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"

	"builder/internal/elf"
)

// kernel is the release of the running kernel.
func (h Host) kernel() string { return h.says("/proc/sys/kernel/osrelease") }

// atLeast compares the numbers at the beginning of the kernel's release.
func (h Host) atLeast(version string) bool {
	numbers, _, _ := strings.Cut(h.kernel(), "-")
	return numbers != "" && elf.CompareVersions(numbers, version) >= 0
}

// options returns the configuration of the kernel, or "" where it is nowhere.
func (h Host) options() string {
	for _, file := range []string{"/boot/config-" + h.kernel(), "/lib/modules/" + h.kernel() + "/config"} {
		if text := h.says(file); text != "" {
			return text
		}
	}
	packed, err := h.read("/proc/config.gz")
	if err != nil {
		return ""
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// option reports whether the kernel was built with an option, and whether that
// is known.
func (h Host) option(name string) (on, known bool) {
	config := "\n" + h.options()
	return strings.Contains(config, "\n"+name+"=y") || strings.Contains(config, "\n"+name+"=m"), len(config) > 1
}

// memoryPeers are the files whose presence NCCL and RCCL take for a module that
// opens the memory of GPUs to NICs.
var memoryPeers = []struct{ file, name string }{
	{"/sys/module/nvidia_peermem/version", "nvidia_peermem"},
	{"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
	{"/sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem"},
	{"/sys/kernel/mm/memory_peers/amdkfd/version", "amdkfd"},
	{"/sys/kernel/memory_peers/amdkfd/version", "amdkfd"},
	{"/sys/memory_peers/amdkfd/version", "amdkfd"},
}

// peerMemory looks for one of the ways on which a NIC reaches the memory of a GPU:
// a module for peer memory, or DMA-BUF of the kernel.
func peerMemory(ctx context.Context, e *exam) Finding {
	forNVIDIA := e.exists(nvidiaVersion) || e.tools(ctx).tool == "nvidia-smi" && len(e.tools(ctx).GPUs) > 0
	forAMD := len(e.kfdNodes()) > 0
	switch {
	case !forNVIDIA && !forAMD && !e.exists("/sys/class"):
		return unknown("/sys/class cannot be read")
	case !forNVIDIA && !forAMD:
		return none("no GPU with a driver")
	case len(e.names(rdmaDir)) == 0:
		return none("no RDMA device")
	}
	for _, p := range memoryPeers {
		if e.exists(p.file) {
			return ok("%s is loaded", p.name)
		}
	}
	if forNVIDIA {
		return e.dmabufOfNVIDIA()
	}
	return e.dmabufOfAMD()
}

// dmabufOfNVIDIA asks for the open module, and for a kernel that hands DMA-BUFs to
// NICs, since 5.12.
func (e *exam) dmabufOfNVIDIA() Finding {
	open := strings.Contains(e.says(nvidiaVersion), "Open Kernel Module")
	switch {
	case !e.exists(nvidiaVersion):
		return unknown("no nvidia_peermem; %s is not there to tell whether the module is the open one", nvidiaVersion)
	case open && e.kernel() == "":
		return unknown("no nvidia_peermem; the release of the kernel is not known")
	case open && e.atLeast("5.12"):
		return ok("DMA-BUF: NVIDIA's open module on kernel %s", e.kernel())
	}
	why := "NVIDIA's module is not the open one"
	if open {
		why = fmt.Sprintf("kernel %s is older than 5.12", e.kernel())
	}
	return warn("no nvidia_peermem, and no DMA-BUF: %s", why).
		remedy("modprobe nvidia_peermem, or NVIDIA's open kernel module on Linux 5.12 or newer")
}

// dmabufOfAMD asks for the two options that RCCL asks for.
func (e *exam) dmabufOfAMD() Finding {
	var lacking []string
	for _, name := range []string{"CONFIG_DMABUF_MOVE_NOTIFY", "CONFIG_PCI_P2PDMA"} {
		on, known := e.option(name)
		if !known {
			return unknown("no module for peer memory; the options of kernel %s are nowhere to be read", e.kernel())
		}
		if !on {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return ok("DMA-BUF: kernel %s has what RCCL asks for; NCCL_DMABUF_ENABLE=1 turns it on", e.kernel())
	}
	return warn("no module for peer memory, and kernel %s lacks %s", e.kernel(), strings.Join(lacking, ", ")).
		remedy("install amdgpu-dkms with the RDMA stack of the NIC's vendor, or a kernel with these options")
}
