// Package fabric reads the GPUs and NICs of a host and their connections, as reported
// by the kernel: the PCI tree, AMD's compute driver and the RDMA devices. It runs no
// vendor tool; package gpu does. It judges nothing; package doctor does.
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

// DeviceFile returns the path of a kernel file for a device.
func DeviceFile(address, name string) string { return path.Join(pciDir, address, name) }

// ReadPCI reads the PCI tree.
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

// wayOf extracts the path from a link such as
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

// GPUs lists the GPUs of a vendor. Class 03 is a display controller. Class 12 is a
// processing accelerator, used by Instinct cards since 2023.
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

// The kinships of two devices, nearest first, named as in `nvidia-smi topo`.
const (
	PIX  = "PIX"  // at most one PCIe switch between them
	PXB  = "PXB"  // several switches, but no host bridge
	PHB  = "PHB"  // through the host bridge of one processor
	NODE = "NODE" // through host bridges of one NUMA node
	SYS  = "SYS"  // between NUMA nodes

	Unknown = "?" // paths or NUMA nodes are unknown
)

var kinships = []string{PIX, PXB, PHB, NODE, SYS}

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

// Nearest returns the kinship of a device with the nearest of others.
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

// Bridges lists the addresses of all bridges above the devices, each once.
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
