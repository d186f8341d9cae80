package doctor

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A kfdNode is a GPU in the topology of the kernel's compute driver for AMD
// (drivers/gpu/drm/amd/amdkfd/kfd_topology.c).
type kfdNode struct {
	id      int
	target  string          // gfx90a
	address string          // on PCI: 0000:63:00.0
	links   map[int]kfdLink // to other GPUs, by their id
}

// A kfdLink is how one of them reaches another. RCCL and rocm-smi read the same.
type kfdLink struct {
	kind   string // XGMI or PCIE
	weight int    // 15 for each hop of xGMI, 13 inside of one GPU, more over PCIe
	mbps   int    // in one direction; 0 where the kernel does not say, as beyond one hop
}

const kfdDir = "/sys/class/kfd/kfd/topology/nodes"

// maxNodes bounds the nodes that are read, and the links of each: eight GPUs in
// eight partitions are 64.
const maxNodes = 256

// kfd reads the nodes that have SIMDs, in the order of their ids.
func (e *exam) kfd() []kfdNode {
	if e.nodes == nil {
		e.nodes = readKFD(e.Host)
	}
	return *e.nodes
}

func readKFD(h Host) *[]kfdNode {
	nodes := []kfdNode{}
	for _, id := range numbers(h.names(kfdDir)) {
		properties := h.properties(kfdDir, strconv.Itoa(id), "properties")
		if properties["simd_count"] == 0 {
			continue
		}
		nodes = append(nodes, kfdNode{
			id: id, target: gfx(properties["gfx_target_version"]), address: location(properties["domain"], properties["location_id"]),
			links: h.kfdLinks(strconv.Itoa(id)),
		})
	}
	isGPU := map[int]bool{}
	for _, n := range nodes {
		isGPU[n.id] = true
	}
	for _, n := range nodes {
		maps.DeleteFunc(n.links, func(to int, _ kfdLink) bool { return !isGPU[to] })
	}
	return &nodes
}

// kfdLinks reads the links of a node: those that are there, and those that the
// driver puts together of ways over PCIe where GPUs may reach each other so.
func (h Host) kfdLinks(node string) map[int]kfdLink {
	kinds := map[int64]string{2: "PCIE", 11: "XGMI"}
	links := map[int]kfdLink{}
	for _, group := range []string{"p2p_links", "io_links"} {
		dir := path.Join(kfdDir, node, group)
		for _, i := range numbers(h.names(dir)) {
			p := h.properties(dir, strconv.Itoa(i), "properties")
			if kind, known := kinds[p["type"]]; known {
				links[int(p["node_to"])] = kfdLink{kind, int(p["weight"]), int(p["max_bandwidth"])}
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
func (h Host) properties(parts ...string) map[string]int64 {
	values := map[string]int64{}
	for line := range strings.Lines(h.says(path.Join(parts...))) {
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

// linkOf finds how one GPU reaches another, by their addresses.
func linkOf(nodes []kfdNode, from, to string) (kfdLink, bool) {
	a := slices.IndexFunc(nodes, func(n kfdNode) bool { return n.address == from })
	b := slices.IndexFunc(nodes, func(n kfdNode) bool { return n.address == to })
	if a < 0 || b < 0 {
		return kfdLink{}, false
	}
	link, found := nodes[a].links[nodes[b].id]
	return link, found
}

// String says a link in words: xGMI, 1 hop, 50 GB/s.
func (l kfdLink) String() string {
	text := fmt.Sprintf("PCIe, weight %d", l.weight)
	switch {
	case l.kind == "XGMI" && l.weight > 0 && l.weight%15 == 0:
		text = "xGMI, " + count(l.weight/15, "hop")
	case l.kind == "XGMI":
		text = fmt.Sprintf("xGMI, weight %d", l.weight)
	}
	if l.mbps > 0 {
		text += fmt.Sprintf(", %g GB/s in one direction", float64(l.mbps)/1000)
	}
	return text
}

// pairs says how every two of the nodes reach each other, "" where the kernel
// names no way.
func pairs(nodes []kfdNode) []string {
	var all []string
	for i, a := range nodes {
		for _, b := range nodes[i+1:] {
			text := ""
			if link, found := linkOf(nodes, a.address, b.address); found {
				text = link.String()
			}
			all = append(all, text)
		}
	}
	return all
}
