// Package fabric reads the GPUs and NICs of a host and the paths between them from the
// kernel's list of PCI and RDMA devices. It runs no tool; package gpu does. It judges
// nothing; package doctor does.
package fabric

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/machine/host"
)

// A Tree holds the PCI devices of a host by address (0000:1b:00.0).
type Tree struct {
	Err     error // error in reading the tree
	order   []string
	devices map[string]Device
}

// A Device is a PCI device.
type Device struct {
	Address string
	NUMA    int      // NUMA node; -1 if the firmware does not report it
	Way     []string // path from the host bridge: pci0000:15, 0000:15:01.0, …, the device; nil if unknown

	vendor string // 0x10de
	class  string // 0x030200
}

// maxDevices limits the number of devices read. A host with sixteen GPUs has some
// hundreds.
const maxDevices = 10000

const pciDir = "/sys/bus/pci/devices"

// ReadPCI reads the PCI tree.
func ReadPCI(h host.Host) *Tree {
	t := &Tree{devices: map[string]Device{}}
	t.order, t.Err = h.List(pciDir)
	t.order = t.order[:min(len(t.order), maxDevices)]
	for _, name := range t.order {
		dir := path.Join(pciDir, name)
		node, known := h.Number(path.Join(dir, "numa_node"))
		if !known {
			node = -1
		}
		t.devices[name] = Device{
			Address: name, NUMA: int(node), Way: wayOf(h.Link(dir)),
			vendor: h.Says(path.Join(dir, "vendor")), class: h.Says(path.Join(dir, "class")),
		}
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
	NVIDIA = "0x10de"
	AMD    = "0x1002"
)

// Device returns the device with an address. For an unknown address it sets no other
// field.
func (t *Tree) Device(address string) Device {
	if d, known := t.devices[address]; known {
		return d
	}
	return Device{Address: address, NUMA: -1}
}

// GPUs lists the GPUs of vendors. Class 03 is a display controller. Class 12 is a
// processing accelerator, used by Instinct cards since 2023.
func (t *Tree) GPUs(vendors ...string) []Device {
	var all []Device
	for _, address := range t.order {
		d := t.devices[address]
		if slices.Contains(vendors, d.vendor) && (strings.HasPrefix(d.class, "0x03") || strings.HasPrefix(d.class, "0x12")) {
			all = append(all, d)
		}
	}
	return all
}

// The kinships of two devices, nearest first, named as in `nvidia-smi topo`.
const (
	PIX  = "PIX"  // at most one PCIe switch between them
	PXB  = "PXB"  // several switches, but no host bridge
	PHB  = "PHB"  // through the host bridge of one processor
	NODE = "NODE" // through host bridges of one NUMA node
	SYS  = "SYS"  // between NUMA nodes

	Unknown = "?" // paths or NUMA nodes are unknown
)

// Kinship returns the distance between two devices as a class.
func Kinship(a, b Device) string {
	if len(a.Way) < 2 || len(b.Way) < 2 {
		return Unknown
	}
	common := 0
	for common < min(len(a.Way), len(b.Way)) && a.Way[common] == b.Way[common] {
		common++
	}
	below := max(len(a.Way), len(b.Way)) - common // steps below the last common bridge
	switch {
	case common > 1 && below <= 2: // the device and the switch port above it
		return PIX
	case common > 1:
		return PXB
	case common == 1:
		return PHB
	case a.NUMA < 0 || b.NUMA < 0:
		return Unknown
	case a.NUMA == b.NUMA:
		return NODE
	}
	return SYS
}
