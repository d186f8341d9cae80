// Package fabric reads which GPUs and NICs a host has and what joins them, as the
// kernel tells it: the tree of PCI, the compute driver of AMD, the RDMA devices. It
// asks no tool of a vendor, as package gpu does, and finds no fault, as package
// doctor does.
package fabric

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/machine/host"
)

// A Tree is the PCI devices of a host by address (0000:1b:00.0).
type Tree struct {
	Err     error // the tree could not be read
	order   []string
	devices map[string]Device
}

// A Device is one of them.
type Device struct {
	Address string
	NUMA    int      // node of memory; -1 where the firmware does not say
	Way     []string // from the host bridge down: pci0000:15, 0000:15:01.0, …, the device; nil where it is not known

	vendor string // 0x10de
	class  string // 0x030200
}

// maxDevices bounds the devices that are looked at; a host with sixteen GPUs has
// some hundreds.
const maxDevices = 10000

const pciDir = "/sys/bus/pci/devices"

// DeviceFile is the path of a file that the kernel keeps of a device.
func DeviceFile(address, name string) string { return path.Join(pciDir, address, name) }

// ReadPCI reads the tree.
func ReadPCI(h host.Host) *Tree {
	t := &Tree{devices: map[string]Device{}}
	var names []string
	names, t.Err = h.List(pciDir)
	for _, name := range names[:min(len(names), maxDevices)] {
		node, known := h.Number(DeviceFile(name, "numa_node"))
		if !known {
			node = -1
		}
		t.order = append(t.order, name)
		t.devices[name] = Device{
			Address: name, NUMA: int(node), Way: wayOf(h.Link(path.Join(pciDir, name))),
			vendor: h.Says(DeviceFile(name, "vendor")), class: h.Says(DeviceFile(name, "class")),
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
	NVIDIA = "0x10de"
	AMD    = "0x1002"
)

// Device is the one of an address; of one that PCI does not know nothing else is
// known.
func (t *Tree) Device(address string) Device {
	if d, known := t.devices[address]; known {
		return d
	}
	return Device{Address: address, NUMA: -1}
}

// GPUs lists the devices of a vendor that compute or display: 03 is a display
// controller, 12 a processing accelerator, as the Instinct cards of 2023 and later
// call themselves.
func (t *Tree) GPUs(vendor string) []Device {
	var all []Device
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
	PIX  = "PIX"  // at most one PCIe switch lies between them
	PXB  = "PXB"  // several switches, and not the host bridge
	PHB  = "PHB"  // the host bridge of one processor
	NODE = "NODE" // host bridges of one node of memory
	SYS  = "SYS"  // nodes of memory

	Unknown = "?" // their ways do not tell
)

var kinships = []string{PIX, PXB, PHB, NODE, SYS}

// Kinship says how far apart two devices are.
func Kinship(a, b Device) string {
	if len(a.Way) < 2 || len(b.Way) < 2 {
		return Unknown
	}
	common := 0
	for common < min(len(a.Way), len(b.Way)) && a.Way[common] == b.Way[common] {
		common++
	}
	below := max(len(a.Way), len(b.Way)) - common // steps from the last common bridge
	switch {
	case common > 1 && below <= 2: // the device, and the port of the switch above it
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

// Nearest is the kinship of a device with the one that is nearest to it.
func Nearest(d Device, others []Device) string {
	best := len(kinships)
	for _, o := range others {
		if i := slices.Index(kinships, Kinship(d, o)); i >= 0 {
			best = min(best, i)
		}
	}
	if best == len(kinships) {
		return Unknown
	}
	return kinships[best]
}

// Bridges lists the addresses of the bridges above some devices, each once.
func Bridges(devices []Device) []string {
	var all []string
	seen := map[string]bool{}
	for _, d := range devices {
		for i, address := range d.Way {
			if i > 0 && i < len(d.Way)-1 && !seen[address] { // neither the host bridge nor the device
				seen[address] = true
				all = append(all, address)
			}
		}
	}
	return all
}
