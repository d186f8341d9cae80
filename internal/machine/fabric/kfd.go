package fabric

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"builder/internal/machine/host"
)

// A Node is a GPU in the topology reported by the kernel's compute driver for AMD
// (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).
type Node struct {
	Target  string // gfx90a
	Address string // PCI address: 0000:63:00.0

	id    int
	links map[int]Link // links to other GPUs, by node ID
}

// A Link is a connection between two nodes. RCCL and rocm-smi read the same values.
type Link struct {
	Kind   string // XGMI or PCIe; "" if the kernel reports no link
	Weight int    // 15 for each hop of xGMI, 13 inside one GPU, more over PCIe

	mbps int // one direction; 0 if the kernel does not report it, for example beyond one hop
}

// The kinds of links.
const (
	XGMI = "XGMI"
	PCIe = "PCIe"
)

const kfdDir = "/sys/class/kfd/kfd/topology/nodes"

// maxNodes limits the number of nodes, and the links of each. Eight GPUs in eight
// partitions are 64 nodes.
const maxNodes = 256

// ReadKFD reads all nodes with SIMDs, in order of their IDs.
func ReadKFD(h host.Host) []Node {
	nodes := []Node{}
	for _, id := range numbers(h.Names(kfdDir)) {
		p := properties(h, kfdDir, strconv.Itoa(id), "properties")
		if p["simd_count"] == 0 {
			continue
		}
		nodes = append(nodes, Node{
			id: id, Target: gfx(p["gfx_target_version"]), Address: location(p["domain"], p["location_id"]),
			links: linksOf(h, strconv.Itoa(id)),
		})
	}
	isGPU := map[int]bool{}
	for _, n := range nodes {
		isGPU[n.id] = true
	}
	for _, n := range nodes {
		maps.DeleteFunc(n.links, func(to int, _ Link) bool { return !isGPU[to] })
	}
	return nodes
}

// linksOf reads the links of a node: physical ones, and those composed by the driver
// from PCIe links between GPUs with peer access. Physical links take precedence.
func linksOf(h host.Host, node string) map[int]Link {
	kinds := map[int64]string{2: PCIe, 11: XGMI}
	links := map[int]Link{}
	for _, group := range []string{"p2p_links", "io_links"} {
		dir := path.Join(kfdDir, node, group)
		for _, i := range numbers(h.Names(dir)) {
			p := properties(h, dir, strconv.Itoa(i), "properties")
			if kind, known := kinds[p["type"]]; known {
				links[int(p["node_to"])] = Link{kind, int(p["weight"]), int(p["max_bandwidth"])}
			}
		}
	}
	return links
}

// numbers returns the numeric names, sorted.
func numbers(names []string) []int {
	var all []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all[:min(len(all), maxNodes)]
}

// properties reads a file with a name and a number on each line. It skips other lines.
func properties(h host.Host, parts ...string) map[string]int64 {
	values := map[string]int64{}
	for line := range strings.Lines(h.Says(path.Join(parts...))) {
		if f := strings.Fields(line); len(f) == 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				values[f[0]] = n
			}
		}
	}
	return values
}

// location converts a location_id to a PCI address from its bus, device and function.
// The higher bits are the partition.
func location(domain, id int64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, id>>8&0xff, id>>3&0x1f, id&7)
}

// gfx converts a gfx_target_version to the compiler's notation. 90010 is gfx90a: major,
// minor and stepping, two digits each.
func gfx(version int64) string {
	if version <= 0 {
		return "an unknown target"
	}
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

// LinkBetween returns the link from one GPU to another, by address.
func LinkBetween(nodes []Node, from, to string) Link {
	a := slices.IndexFunc(nodes, func(n Node) bool { return n.Address == from })
	b := slices.IndexFunc(nodes, func(n Node) bool { return n.Address == to })
	if a < 0 || b < 0 {
		return Link{}
	}
	return nodes[a].links[nodes[b].id]
}

// Pairs returns the link of every pair of nodes.
func Pairs(nodes []Node) []Link {
	var all []Link
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			all = append(all, LinkBetween(nodes, a.Address, b.Address))
		}
	}
	return all
}

// String formats a link, such as "xGMI, 1 hop, 50 GB/s in one direction".
func (l Link) String() string {
	text := fmt.Sprintf("%s, weight %d", l.Kind, l.Weight)
	switch hops := l.Weight / 15; {
	case l.Kind != XGMI:
	case hops == 1 && l.Weight%15 == 0:
		text = "xGMI, 1 hop"
	case hops > 1 && l.Weight%15 == 0:
		text = fmt.Sprintf("xGMI, %d hops", hops)
	default:
		text = fmt.Sprintf("xGMI, weight %d", l.Weight)
	}
	if l.mbps > 0 {
		text += fmt.Sprintf(", %g GB/s in one direction", float64(l.mbps)/1000)
	}
	return text
}
