package fabric

import (
	"path"
	"strings"

	"builder/internal/machine/host"
)

// A NIC is an RDMA device.
type NIC struct {
	Name     string // mlx5_0
	Address  string // PCI address; "" for a software device
	Firmware string // firmware version
	Ports    []Port
}

// A Port is a port of a NIC.
type Port struct {
	Number string
	State  string // ACTIVE
	Rate   string // 400 Gb/sec (4X NDR)
	Layer  string // InfiniBand or Ethernet
}

// RDMADir has an entry for each RDMA device.
const RDMADir = "/sys/class/infiniband"

// ReadRDMA reads all devices and ports.
func ReadRDMA(h host.Host) []NIC {
	var all []NIC
	line := func(parts ...string) string { return host.FirstLine(h.Says(path.Join(parts...))) }
	for _, name := range h.Names(RDMADir) {
		dir := path.Join(RDMADir, name)
		n := NIC{Name: name, Firmware: line(dir, "fw_ver")}
		if target := path.Base(h.Link(path.Join(dir, "device"))); h.Exists(path.Join(pciDir, target)) {
			n.Address = target
		}
		for _, number := range h.Names(path.Join(dir, "ports")) {
			port := path.Join(dir, "ports", number)
			_, state, _ := strings.Cut(line(port, "state"), ": ") // 4: ACTIVE
			n.Ports = append(n.Ports, Port{number, state, line(port, "rate"), line(port, "link_layer")})
		}
		all = append(all, n)
	}
	return all
}
