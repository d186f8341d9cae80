package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/base/size"
)

// An end is a GPU or a NIC in the drawing.
type end struct {
	label string // GPU0, NIC0
	name  string // NVIDIA H200, mlx5_0
	device
}

// ends lists the GPUs in the order of their tool, and the NICs by name. A device
// unknown to PCI has no path.
func (e *exam) ends() (gpus, nics []end) {
	tree := e.pci()
	host, _ := e.tools() // without an answer the kernel's list counts
	for i, g := range host.GPUs {
		gpus = append(gpus, end{fmt.Sprintf("GPU%d", i), g.Name, tree.at(g.BusID)})
	}
	if len(gpus) == 0 {
		for i, d := range tree.gpus(vendorNVIDIA, vendorAMD) {
			gpus = append(gpus, end{fmt.Sprintf("GPU%d", i), "", d})
		}
	}
	for i, d := range readRDMA(e.Host) {
		nics = append(nics, end{fmt.Sprintf("NIC%d", i), d.name, tree.at(d.address)})
	}
	return gpus, nics
}

// topology draws the connections of GPUs with each other and with the NICs. By default
// NCCL and RCCL use GPUDirect RDMA only if nothing but PCIe switches is between GPU and
// NIC.
func topology(_ context.Context, e *exam) Finding {
	gpus, nics := e.ends()
	if len(gpus) == 0 {
		if err := e.pci().err; err != nil {
			return unknown("%s", because(err))
		}
		return none("no GPU")
	}
	host, _ := e.tools()
	drawing := draw(gpus, nics, host.Links)
	summary := fmt.Sprintf("%s, %s", size.Count(len(gpus), "GPU"), size.Count(len(nics), "NIC"))
	if e.pci().err != nil {
		return unknown("%s; %s", summary, because(e.pci().err)).detail(drawing...)
	}
	if len(nics) == 0 {
		return ok("%s", summary).detail(drawing...)
	}
	var far, blind []string
	for _, g := range gpus {
		switch nearest(g, nics) {
		case "PIX", "PXB":
		case "?":
			blind = append(blind, g.label)
		default:
			far = append(far, g.label)
		}
	}
	switch {
	case len(far) > 0:
		return warn("%s; no NIC behind the same PCIe switch as %s", summary, strings.Join(far, ", ")).
			remedy("GPUDirect RDMA stays off there by default: allow it with NCCL_NET_GDR_LEVEL=PHB or SYS; in a virtual machine, set NCCL_TOPO_FILE to the file of its provider").
			detail(drawing...)
	case len(blind) > 0:
		return unknown("%s; the place of %s is unknown", summary, strings.Join(blind, ", ")).detail(drawing...)
	}
	return ok("%s; each GPU has a NIC behind the same PCIe switches", summary).detail(drawing...)
}

// nearest returns the kinship of a GPU with its nearest NIC.
func nearest(g end, nics []end) string {
	best := len(kinships) - 1
	for _, n := range nics {
		best = min(best, slices.Index(kinships, kinship(g.device, n.device)))
	}
	return kinships[best]
}

// perRow is the number of columns that fit into 80 characters.
const perRow = 9

// draw writes one row per GPU with its link to each other device.
func draw(gpus, nics []end, links [][]string) []string {
	var lines []string
	columns := slices.Concat(gpus, nics)
	for begin := 0; begin < len(columns); begin += perRow {
		part := columns[begin:min(begin+perRow, len(columns))]
		lines = append(lines, row("", "node", part, func(i int) string { return part[i].label }))
		for i, g := range gpus {
			lines = append(lines, row(g.label, nodeName(g.node), part, func(k int) string {
				switch j := begin + k; {
				case j == i:
					return "X"
				case i < len(links) && j < len(links[i]):
					return links[i][j]
				}
				return kinship(g.device, part[k].device)
			}))
		}
		lines = append(lines, "")
	}
	for _, c := range columns {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s  %-12s  node %s  %s", c.label, c.address, nodeName(c.node), c.name)))
	}
	return lines
}

func row(label, node string, columns []end, cell func(int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-5s  %-4s", label, node)
	for i := range columns {
		fmt.Fprintf(&b, "  %-5.5s", cell(i))
	}
	return strings.TrimRight(b.String(), " ")
}

func nodeName(node int) string {
	if node < 0 {
		return "-"
	}
	return fmt.Sprint(node)
}

// numa counts the NUMA nodes. It warns about automatic page migration between nodes,
// which slows down GPUs reading the pages, and about nodes without memory or CPUs, on which
// NVIDIA's driver refuses host memory to some ranks and not to others
// (https://github.com/NVIDIA/nccl/issues/2190).
func numa(_ context.Context, e *exam) Finding {
	gpus, _ := e.ends()
	const dir = "/sys/devices/system/node/"
	nodes := len(e.Glob(dir + "node[0-9]*"))
	balancing := e.Says("/proc/sys/kernel/numa_balancing")
	online, withMemory, withCPU := e.Says(dir+"online"), e.Says(dir+"has_memory"), e.Says(dir+"has_cpu")
	uneven := withMemory != "" && withMemory != online || withCPU != "" && withCPU != online
	switch {
	case nodes == 0:
		return unknown("/sys/devices/system/node cannot be read")
	case uneven && len(e.pci().gpus(vendorNVIDIA)) > 0:
		return warn("nodes %s, with memory %s, with CPUs %s", online, withMemory, withCPU).
			remedy("set NCCL_CUMEM_HOST_ENABLE=0 for jobs with NCCL 2.26.3 or newer, which may hang or fail here; NVIDIA's drivers before 595 can crash in cuMemCreate too")
	case len(gpus) > 0 && nodes > 1 && balancing != "" && balancing != "0":
		return warn("%s, and the kernel moves pages between them", size.Count(nodes, "node")).
			remedy("run sysctl kernel.numa_balancing=0, and add it to /etc/sysctl.d to keep it")
	}
	return ok("%s", size.Count(nodes, "node"))
}
