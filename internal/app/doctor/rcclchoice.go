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
		return none("no GPU of AMD with a driver")
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
const gdrUnknown = "GPU Direct RDMA not known"

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
		choices = append(choices, choice{share(n) + " P2P over xGMI", "the kernel names a link of xGMI", ""})
	}
	switch n := count[fabric.PCIe]; {
	case n > 0 && strings.Contains(e.Says("/proc/cpuinfo"), "GenuineIntel"):
		choices = append(choices, choice{
			share(n) + " P2P over PCIe or host memory (SHM)", "on a processor of Intel RCCL takes P2P where only PCIe switches lie between, NCCL_P2P_LEVEL=SYS further", "",
		})
	case n > 0:
		choices = append(choices, choice{
			share(n) + " P2P over PCIe", "the kernel names a way between them, so their memory can be reached over PCIe; AMD's documentation asks for HSA_FORCE_FINE_GRAIN_PCIE=1 in the job, and RCCL of ROCm 5 has no P2P without it", "",
		})
	}
	if n := count[""]; n > 0 {
		choices = append(choices, choice{
			share(n) + " through host memory (SHM)", "the kernel names no way between them",
			"for P2P over PCIe the kernel needs CONFIG_HSA_AMD_P2P, the firmware large BARs (Above 4G decoding), and the IOMMU to pass through",
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
			"RCCL takes it up to PXB; on EPYC also up to PHB, where GPU and NIC lie on the same node and their addresses begin alike; NCCL_NET_GDR_LEVEL sets another level", "",
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
				"no GPU Direct RDMA", fmt.Sprintf("%s is there, and %s does not look there", p.dir, who), "RCCL of ROCm 6.3 or newer",
			}
		case hyperV && e.Says("/proc/sys/kernel/numa_balancing") == "1":
			return choice{
				"GPU Direct RDMA with relaxed ordering alone", "on Hyper-V RCCL drops it where numa_balancing is 1 and NCCL_IB_PCI_RELAXED_ORDERING is 0", "",
			}
		default:
			return choice{"GPU Direct RDMA by peer memory", p.dir + " is there", ""}
		}
	}
	if !hyperV && knows("2.21.5") && e.hasSymbol("ib_register_peer_memory_client") {
		return choice{
			"GPU Direct RDMA in name alone",
			"no client of peer memory is registered, and RCCL of ROCm 6.3 and later takes the symbol ib_register_peer_memory_client of /proc/kallsyms for one, until a change of 2026-07 (ROCm/rocm-systems#9540)",
			"register the driver of the GPUs with that of the NIC (amdgpu-dkms built after the vendor's RDMA stack), or NCCL_DMABUF_ENABLE=1 where the kernel allows DMA-BUF",
		}
	}
	return e.byDMABUF()
}

// byDMABUF checks RCCL's conditions for DMA-BUF: two options in the kernel's
// configuration, and a variable in the job.
func (e *exam) byDMABUF() choice {
	lacking, known := e.lacksForDMABUF()
	if !known {
		return choice{gdrUnknown, "no client of peer memory, and the options of kernel " + e.Kernel() + " are nowhere to be read", ""}
	}
	if len(lacking) > 0 {
		return choice{
			"no GPU Direct RDMA", fmt.Sprintf("no client of peer memory, and kernel %s lacks %s", e.Kernel(), strings.Join(lacking, " and ")),
			"install amdgpu-dkms with the RDMA stack of the NIC's vendor, or a kernel with these options",
		}
	}
	if file := "/boot/config-" + e.Kernel(); !e.Exists(file) {
		return choice{
			"no GPU Direct RDMA", fmt.Sprintf("kernel %s allows DMA-BUF, and RCCL reads that in %s, which is not there", e.Kernel(), file),
			"give the container that file, read-only, and the job NCCL_DMABUF_ENABLE=1",
		}
	}
	return choice{"GPU Direct RDMA by DMA-BUF", "kernel " + e.Kernel() + " has both options; the job has to set NCCL_DMABUF_ENABLE=1", ""}
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
