package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/fabric"
)

// An end is a GPU or a NIC in the drawing.
type end struct {
	label string // GPU0, NIC0
	name  string // NVIDIA H200, mlx5_0
	fabric.Device
}

// ends lists the GPUs in the order of their tool, and the NICs by name. A device
// unknown to PCI has no path.
func (e *exam) ends(ctx context.Context) (gpus, nics []end) {
	tree := e.pci()
	for _, g := range e.tools(ctx).GPUs {
		gpus = append(gpus, end{name: g.Name, Device: tree.Device(g.BusID)})
	}
	if len(gpus) == 0 {
		for _, d := range slices.Concat(tree.GPUs(fabric.NVIDIA), tree.GPUs(fabric.AMD)) {
			gpus = append(gpus, end{Device: d})
		}
	}
	if len(gpus) == 0 && tree.Err != nil { // a container may have the driver but not the PCI devices
		for _, n := range e.kfd() {
			gpus = append(gpus, end{name: n.Target, Device: tree.Device(n.Address)})
		}
	}
	for _, d := range fabric.ReadRDMA(e.Host) {
		nics = append(nics, end{name: d.Name, Device: tree.Device(d.Address)})
	}
	for i := range gpus {
		gpus[i].label = fmt.Sprintf("GPU%d", i)
	}
	for i := range nics {
		nics[i].label = fmt.Sprintf("NIC%d", i)
	}
	return gpus, nics
}

// topology draws the connections of GPUs with each other and with the NICs. By default
// NCCL and RCCL use GPUDirect RDMA only if nothing but PCIe switches is between GPU and
// NIC.
func topology(ctx context.Context, e *exam) Finding {
	gpus, nics := e.ends(ctx)
	if len(gpus) == 0 {
		if err := e.pci().Err; err != nil {
			return unknown("%s", because(err))
		}
		return none("no GPU")
	}
	drawing := draw(gpus, nics, e.links(ctx, gpus))
	drawing = append(drawing, weigh(gpus, e.kfd())...)
	summary := fmt.Sprintf("%s, %s", count(len(gpus), "GPU"), count(len(nics), "NIC"))
	if e.pci().Err != nil {
		return unknown("%s; %s", summary, because(e.pci().Err)).detail(drawing...)
	}
	if len(nics) == 0 {
		return ok("%s", summary).detail(drawing...)
	}
	var far, blind []string
	for _, g := range gpus {
		switch nearest := nearest(g, nics); nearest {
		case fabric.PIX, fabric.PXB:
		case fabric.Unknown:
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

// links returns the links between GPUs from their tool, or from the kernel. It returns
// nil if neither knows every pair.
func (e *exam) links(ctx context.Context, gpus []end) [][]string {
	if said := e.tools(ctx).Links; said != nil {
		return said
	}
	links := make([][]string, len(gpus))
	for i, a := range gpus {
		links[i] = make([]string, len(gpus))
		for j, b := range gpus {
			link := fabric.LinkBetween(e.kfd(), a.Address, b.Address)
			if i != j && link.Kind == "" {
				return nil
			}
			if link.Kind == fabric.XGMI { // for PCIe the path is more informative
				links[i][j] = link.Kind
			}
		}
	}
	return links
}

// weigh draws the kernel's weights of the paths between GPUs and counts the kinds of
// paths. It returns nil if the kernel names no kind.
func weigh(gpus []end, nodes []fabric.Node) []string {
	var kinds []string
	for _, way := range fabric.Pairs(nodes) {
		if way.Kind != "" {
			kinds = append(kinds, way.String())
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	lines := []string{"", "weight of the paths between GPUs, reported by the kernel"}
	for begin := 0; begin < len(gpus); begin += perRow {
		part := gpus[begin:min(begin+perRow, len(gpus))]
		lines = append(lines, row("", "", part, func(i int) string { return part[i].label }))
		for _, g := range gpus {
			lines = append(lines, row(g.label, "", part, func(k int) string {
				link := fabric.LinkBetween(nodes, g.Address, part[k].Address)
				switch {
				case g.Address == part[k].Address:
					return "X"
				case link.Kind == "":
					return "-"
				}
				return fmt.Sprint(link.Weight)
			}))
		}
	}
	return append(lines, "pairs: "+tally(kinds))
}

// nearest returns the kinship of a GPU with its nearest NIC.
func nearest(g end, nics []end) string {
	var devices []fabric.Device
	for _, n := range nics {
		devices = append(devices, n.Device)
	}
	return fabric.Nearest(g.Device, devices)
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
			lines = append(lines, row(g.label, nodeName(g.NUMA), part, func(k int) string {
				j := begin + k
				switch {
				case j == i:
					return "X"
				case j < len(gpus) && i < len(links) && j < len(links[i]) && links[i][j] != "":
					return links[i][j]
				}
				return fabric.Kinship(g.Device, part[k].Device)
			}))
		}
		lines = append(lines, "")
	}
	for _, c := range columns {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s  %-12s  node %s  %s", c.label, c.Address, nodeName(c.NUMA), c.name)))
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
// which slows down GPUs reading the pages.
func numa(ctx context.Context, e *exam) Finding {
	gpus, _ := e.ends(ctx)
	nodes := countList(e.Says("/sys/devices/system/node/online"))
	balancing := e.Says("/proc/sys/kernel/numa_balancing")
	switch {
	case nodes == 0:
		return unknown("/sys/devices/system/node/online cannot be read")
	case len(gpus) > 0 && nodes > 1 && balancing != "" && balancing != "0":
		return warn("%s, and the kernel moves pages between them", count(nodes, "node")).
			remedy("run sysctl kernel.numa_balancing=0, and add it to /etc/sysctl.d to keep it")
	}
	return ok("%s", count(nodes, "node"))
}
