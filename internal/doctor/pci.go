package doctor

import (
	"path"
	"regexp"
	"strings"
)

// A pciTree is the PCI devices of a host by address (0000:1b:00.0).
type pciTree struct {
	order   []string
	devices map[string]pciDevice
	err     error // the tree could not be read
}

// A pciDevice is one of them.
type pciDevice struct {
	address string
	vendor  string   // 0x10de
	class   string   // 0x030200
	node    int      // of memory; -1 where the firmware does not say
	way     []string // from the host bridge down: pci0000:15, 0000:15:01.0, …, the device
}

// maxDevices bounds the devices that are looked at; a host with sixteen GPUs has
// some hundreds.
const maxDevices = 10000

const pciDir = "/sys/bus/pci/devices"

func readPCI(h Host) *pciTree {
	t := &pciTree{devices: map[string]pciDevice{}}
	var names []string
	names, t.err = h.list(pciDir)
	for _, name := range names[:min(len(names), maxDevices)] {
		node, known := h.number(path.Join(pciDir, name, "numa_node"))
		if !known {
			node = -1
		}
		t.order = append(t.order, name)
		t.devices[name] = pciDevice{
			address: name, vendor: h.says(path.Join(pciDir, name, "vendor")), class: h.says(path.Join(pciDir, name, "class")),
			node: int(node), way: wayOf(h.link(path.Join(pciDir, name))),
		}
	}
	return t
}

var hostBridge = regexp.MustCompile(`^pci[0-9a-f]{4,}:[0-9a-f]{2}$`)

// wayOf cuts the way out of a link such as
// ../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0.
func wayOf(link string) []string {
	parts := strings.Split(link, "/")
	for i, part := range parts {
		if hostBridge.MatchString(part) {
			return parts[i:]
		}
	}
	return nil
}

// The vendors of GPUs.
const (
	nvidiaVendor = "0x10de"
	amdVendor    = "0x1002"
)

// gpus lists the devices of a vendor that compute or display: 03 is a display
// controller, 12 a processing accelerator, as the Instinct cards of 2023 and later
// call themselves.
func (t *pciTree) gpus(vendor string) []pciDevice {
	var all []pciDevice
	for _, address := range t.order {
		d := t.devices[address]
		if d.vendor == vendor && (strings.HasPrefix(d.class, "0x03") || strings.HasPrefix(d.class, "0x12")) {
			all = append(all, d)
		}
	}
	return all
}

// The kinships of two devices, as `nvidia-smi topo` calls them, nearest first.
const (
	kinPIX  = "PIX"  // at most one PCIe switch lies between them
	kinPXB  = "PXB"  // several switches, and not the host bridge
	kinPHB  = "PHB"  // the host bridge of one processor
	kinNODE = "NODE" // host bridges of one node of memory
	kinSYS  = "SYS"  // nodes of memory
)

var kinships = []string{kinPIX, kinPXB, kinPHB, kinNODE, kinSYS}

// kinship says how far apart two devices are, "?" where their ways do not tell.
func kinship(a, b pciDevice) string {
	if len(a.way) < 2 || len(b.way) < 2 {
		return "?"
	}
	common := 0
	for common < min(len(a.way), len(b.way)) && a.way[common] == b.way[common] {
		common++
	}
	below := max(len(a.way), len(b.way)) - common // steps from the last common bridge
	switch {
	case common > 1 && below <= 2: // the device, and the port of the switch above it
		return kinPIX
	case common > 1:
		return kinPXB
	case common == 1:
		return kinPHB
	case a.node < 0 || b.node < 0:
		return "?"
	case a.node == b.node:
		return kinNODE
	}
	return kinSYS
}

// bridges lists the addresses of the bridges above some devices, each once.
func (t *pciTree) bridges(devices []pciDevice) []string {
	var all []string
	seen := map[string]bool{}
	for _, d := range devices {
		for i, address := range d.way {
			if i > 0 && i < len(d.way)-1 && !seen[address] { // neither the host bridge nor the device
				seen[address] = true
				all = append(all, address)
			}
		}
	}
	return all
}
