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

// A Node is a GPU in the topology of the kernel's compute driver for AMD
// (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).
type Node struct {
	Target  string // gfx90a
	Address string // on PCI: 0000:63:00.0

	id    int
	links map[int]Link // to other GPUs, by their id
}

// A Link is how one of them reaches another. RCCL and rocm-smi read the same.
type Link struct {
	Kind   string // XGMI or PCIe; "" where the kernel names no way
	Weight int    // 15 for each hop of xGMI, 13 inside of one GPU, more over PCIe

	mbps int // in one direction; 0 where the kernel does not say, as beyond one hop
}

// The kinds of links.
const (
	XGMI = "XGMI"
	PCIe = "PCIe"
)

const kfdDir = "/sys/class/kfd/kfd/topology/nodes"

// maxNodes bounds the nodes that are read, and the links of each: eight GPUs in
// eight partitions are 64.
const maxNodes = 256

// ReadKFD reads the nodes that have SIMDs, in the order of their ids.
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

// linksOf reads the links of a node: those that are there, and those that the
// driver puts together of ways over PCIe where GPUs may reach each other so.
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

// numbers sorts the names that are numbers.
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

// properties reads a file of lines with a name and a number; what is none is left
// out.
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

// location writes a location_id as a PCI address: bus, device and function; what
// stands above them is the partition.
func location(domain, id int64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, id>>8&0xff, id>>3&0x1f, id&7)
}

// gfx writes a gfx_target_version as the compiler does: 90010 is gfx90a, major,
// minor and stepping, two digits each.
func gfx(version int64) string {
	if version <= 0 {
		return "an unknown target"
	}
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

// LinkBetween is how one GPU reaches another, by their addresses.
func LinkBetween(nodes []Node, from, to string) Link {
	a := slices.IndexFunc(nodes, func(n Node) bool { return n.Address == from })
	b := slices.IndexFunc(nodes, func(n Node) bool { return n.Address == to })
	if a < 0 || b < 0 {
		return Link{}
	}
	return nodes[a].links[nodes[b].id]
}

// Pairs is how every two of the nodes reach each other.
func Pairs(nodes []Node) []Link {
	var all []Link
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			all = append(all, LinkBetween(nodes, a.Address, b.Address))
		}
	}
	return all
}

// String says a link in words: xGMI, 1 hop, 50 GB/s in one direction.
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
