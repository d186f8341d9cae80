package doctor

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/machine/host"
)

// A pciTree holds the PCI devices of a host in the order of their addresses.
type pciTree struct {
	err     error // error in reading the tree
	devices []device
}

// A device is a PCI device.
type device struct {
	address string   // 0000:1b:00.0
	node    int      // NUMA node; -1 if the firmware does not report it
	way     []string // path from the host bridge: pci0000:15, 0000:15:01.0, …, the device; nil if unknown
	vendor  string
	class   string // 0x030200
}

const pciDir = "/sys/bus/pci/devices"

func readPCI(h host.Host) pciTree {
	names, err := h.List(pciDir)
	t := pciTree{err: err}
	for _, name := range names {
		dir := path.Join(pciDir, name)
		node, known := h.Number(path.Join(dir, "numa_node"))
		if !known {
			node = -1
		}
		t.devices = append(t.devices, device{name, int(node), wayOf(h.Link(dir)), h.Says(path.Join(dir, "vendor")), h.Says(path.Join(dir, "class"))})
	}
	return t
}

var hostBridge = regexp.MustCompile(`^pci[0-9a-f]{4,}:[0-9a-f]{2}$`)

// wayOf extracts the path from a link such as
// ../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0.
func wayOf(link string) []string {
	parts := strings.Split(link, "/")
	if i := slices.IndexFunc(parts, hostBridge.MatchString); i >= 0 {
		return parts[i:]
	}
	return nil
}

// PCI vendor IDs of GPUs.
const (
	vendorNVIDIA = "0x10de"
	vendorAMD    = "0x1002"
)

// at returns the device with an address. For an unknown address it sets no other field.
func (t pciTree) at(address string) device {
	i := slices.IndexFunc(t.devices, func(d device) bool { return d.address == address })
	if i < 0 {
		return device{address: address, node: -1}
	}
	return t.devices[i]
}

// gpus lists the GPUs of vendors. Class 03 is a display controller. Class 12 is a
// processing accelerator, used by Instinct cards since 2023.
func (t pciTree) gpus(vendors ...string) []device {
	var all []device
	for _, d := range t.devices {
		if slices.Contains(vendors, d.vendor) && (strings.HasPrefix(d.class, "0x03") || strings.HasPrefix(d.class, "0x12")) {
			all = append(all, d)
		}
	}
	return all
}

// kinships lists the distances of two devices, nearest first, named as in
// `nvidia-smi topo`: at most one PCIe switch between them, several switches but no host
// bridge, the host bridge of one processor, host bridges of one NUMA node, several NUMA
// nodes. The last means that the paths or NUMA nodes are unknown.
var kinships = []string{"PIX", "PXB", "PHB", "NODE", "SYS", "?"}

// kinship returns the distance between two devices.
func kinship(a, b device) string {
	if len(a.way) < 2 || len(b.way) < 2 {
		return "?"
	}
	common := 0
	for common < min(len(a.way), len(b.way)) && a.way[common] == b.way[common] {
		common++
	}
	below := max(len(a.way), len(b.way)) - common // steps below the last common bridge
	switch {
	case common > 1 && below <= 2: // the device and the switch port above it
		return "PIX"
	case common > 1:
		return "PXB"
	case common == 1:
		return "PHB"
	case a.node < 0 || b.node < 0:
		return "?"
	case a.node == b.node:
		return "NODE"
	}
	return "SYS"
}
