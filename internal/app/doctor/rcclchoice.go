package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/machine/fabric"
)

// rcclChoice predicts RCCL's transports between the GPUs of this host and to its NICs,
// each with the deciding condition. The conditions come from src/transport/p2p.cc,
// src/transport/net_ib.cc, src/misc/rocmwrap.cc and src/graph/paths.cc of RCCL at the
// tags rocm-6.0.0 to rocm-6.2.1 and of develop (ROCm 6.3). The environment of a job is
// unknown here.
func rcclChoice(ctx context.Context, e *exam) Finding {
	nodes := e.kfd()
	switch {
	case len(nodes) == 0 && e.Exists("/sys/class"):
		return none("no AMD GPU with a driver")
	case len(nodes) == 0:
		return unknown("/sys/class cannot be read")
	}
	var texts, lines, remedies []string
	blind := false
	for _, c := range slices.Concat(e.betweenGPUs(nodes), e.toNICs(ctx)) {
		texts = append(texts, c.found)
		lines = append(lines, c.found+": "+c.because)
		blind = blind || c.found == gdrUnknown
		if c.remedy != "" {
			remedies = append(remedies, c.remedy)
		}
	}
	text := strings.Join(texts, "; ")
	switch {
	case len(remedies) > 0:
		return warn("%s", text).remedy("%s", strings.Join(remedies, "; ")).detail(lines...)
	case blind:
		return unknown("%s", text).detail(lines...)
	}
	return ok("%s", text).detail(lines...)
}

// gdrUnknown is the result if the kernel's options cannot be read.
const gdrUnknown = "GPU Direct RDMA unknown"

// A choice is RCCL's choice and its reason. The remedy is set if a better transport
// exists.
type choice struct{ found, because, remedy string }

// betweenGPUs counts the pairs of GPUs by transport.
func (e *exam) betweenGPUs(nodes []fabric.Node) []choice {
	count := map[string]int{}
	for _, way := range fabric.Pairs(nodes) {
		count[way.Kind]++
	}
	total := len(nodes) * (len(nodes) - 1) / 2
	share := func(n int) string { return fmt.Sprintf("%d of %d pairs of GPUs", n, total) }
	var choices []choice
	if n := count[fabric.XGMI]; n > 0 {
		choices = append(choices, choice{share(n) + " P2P over xGMI", "the kernel reports an xGMI link", ""})
	}
	switch n := count[fabric.PCIe]; {
	case n > 0 && strings.Contains(e.Says("/proc/cpuinfo"), "GenuineIntel"):
		choices = append(choices, choice{
			share(n) + " P2P over PCIe or host memory (SHM)", "with an Intel processor, RCCL uses P2P only across PCIe switches; NCCL_P2P_LEVEL=SYS allows it elsewhere", "",
		})
	case n > 0:
		choices = append(choices, choice{
			share(n) + " P2P over PCIe", "the kernel reports a path between them, so they reach each other's memory over PCIe; AMD's documentation requires HSA_FORCE_FINE_GRAIN_PCIE=1 in the job, and RCCL of ROCm 5 has no P2P without it", "",
		})
	}
	if n := count[""]; n > 0 {
		choices = append(choices, choice{
			share(n) + " through host memory (SHM)", "the kernel reports no path between them",
			"for P2P over PCIe, use a kernel with CONFIG_HSA_AMD_P2P, set large BARs (Above 4G decoding) in the firmware, and let the IOMMU pass through",
		})
	}
	return choices
}

// toNICs predicts whether NICs access GPU memory directly.
func (e *exam) toNICs(ctx context.Context) []choice {
	nics := e.Names(fabric.RDMADir)
	if len(nics) == 0 {
		return []choice{{"to other hosts over sockets", "no RDMA device", ""}}
	}
	c := e.gdr(e.oldestRCCL(ctx))
	choices := []choice{c}
	gpus, ends := e.ends(ctx)
	var far []string
	for _, g := range gpus {
		if near := nearest(g, ends); near == fabric.PHB || near == fabric.NODE || near == fabric.SYS {
			far = append(far, fmt.Sprintf("%s (%s)", g.label, near))
		}
	}
	if len(far) > 0 {
		choices = append(choices, choice{
			"no GPU Direct RDMA by distance for " + strings.Join(far, ", "),
			"RCCL uses it up to PXB; on EPYC also up to PHB, if GPU and NIC are on the same node and their addresses begin alike; NCCL_NET_GDR_LEVEL sets another level", "",
		})
	}
	return choices
}

// gdr predicts GPU Direct RDMA for a release of RCCL. If rccl is "" it assumes the
// release of ROCm 6.3 or later.
func (e *exam) gdr(rccl string) choice {
	who := "RCCL"
	if rccl != "" {
		who = "RCCL " + rccl
	}
	knows := func(since string) bool { return rccl == "" || elf.CompareVersions(rccl, since) >= 0 }
	hyperV := strings.HasPrefix(e.Says("/sys/devices/virtual/dmi/id/bios_version"), "Hyper-V UEFI Release")
	for _, p := range peersOfAMD {
		switch {
		case !p.there(e):
		case !knows(p.since):
			return choice{
				"no GPU Direct RDMA", fmt.Sprintf("%s exists, but %s does not read it", p.dir, who), "use RCCL of ROCm 6.3 or newer",
			}
		case hyperV && e.Says("/proc/sys/kernel/numa_balancing") == "1":
			return choice{
				"GPU Direct RDMA only with relaxed ordering", "on Hyper-V, RCCL does not use it if numa_balancing is 1 and NCCL_IB_PCI_RELAXED_ORDERING is 0", "",
			}
		default:
			return choice{"GPU Direct RDMA by peer memory", p.dir + " exists", ""}
		}
	}
	if !hyperV && knows("2.21.5") && e.hasSymbol("ib_register_peer_memory_client") {
		return choice{
			"GPU Direct RDMA reported but not working",
			"no client of peer memory is registered, but RCCL of ROCm 6.3 and later counts the symbol ib_register_peer_memory_client of /proc/kallsyms as a client, until a change of 2026-07 (ROCm/rocm-systems#9540)",
			"register the driver of the GPUs with the driver of the NIC (build amdgpu-dkms after the vendor's RDMA stack), or set NCCL_DMABUF_ENABLE=1 if the kernel allows DMA-BUF",
		}
	}
	return e.byDMABUF()
}

// byDMABUF checks RCCL's conditions for DMA-BUF: two options in the kernel's
// configuration, and a variable in the job.
func (e *exam) byDMABUF() choice {
	lacking, known := e.lacksForDMABUF()
	if !known {
		return choice{gdrUnknown, "no client of peer memory, and the options of kernel " + e.Kernel() + " cannot be read", ""}
	}
	if len(lacking) > 0 {
		return choice{
			"no GPU Direct RDMA", fmt.Sprintf("no client of peer memory, and kernel %s lacks %s", e.Kernel(), strings.Join(lacking, " and ")),
			"install amdgpu-dkms with the RDMA stack of the NIC's vendor, or use a kernel with these options",
		}
	}
	if file := "/boot/config-" + e.Kernel(); !e.Exists(file) {
		return choice{
			"no GPU Direct RDMA", fmt.Sprintf("kernel %s allows DMA-BUF, but RCCL reads that in %s, which is missing", e.Kernel(), file),
			"mount this file into the container, read-only, and set NCCL_DMABUF_ENABLE=1 in the job",
		}
	}
	return choice{"GPU Direct RDMA by DMA-BUF", "kernel " + e.Kernel() + " has both options; set NCCL_DMABUF_ENABLE=1 in the job", ""}
}

// oldestRCCL returns the lowest NCCL version among the installed RCCL libraries: 2.20.5
// for 2.20.5+hip6.2.
func (e *exam) oldestRCCL(ctx context.Context) string {
	oldest := ""
	for _, version := range e.installed(ctx, rcclFamily).versions {
		numbers := strings.TrimRight(version[:len(version)-len(strings.TrimLeft(version, "0123456789."))], ".")
		if numbers != "" && (oldest == "" || elf.CompareVersions(numbers, oldest) < 0) {
			oldest = numbers
		}
	}
	return oldest
}

// maxSymbols limits the bytes of kernel symbols to read. 200,000 symbols take 12 MB.
const maxSymbols = 64 << 20

// hasSymbol reports whether the kernel has a function.
func (e *exam) hasSymbol(name string) bool {
	f, err := e.Open("/proc/kallsyms")
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxSymbols))
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && strings.EqualFold(fields[1], "t") && fields[2] == name {
			return true
		}
	}
	return false
}
