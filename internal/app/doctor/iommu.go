package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/fabric"
)

// talkers returns the GPUs and NICs whose direct traffic matters.
func (e *exam) talkers(ctx context.Context) []fabric.Device {
	gpus, nics := e.ends(ctx)
	var all []fabric.Device
	for _, x := range slices.Concat(gpus, nics) {
		if len(x.Way) > 0 {
			all = append(all, x.Device)
		}
	}
	return all
}

// iommu reads the IOMMU groups of GPUs and NICs. A group of type identity passes
// addresses through. Other types translate addresses and route traffic between devices
// through the processor.
func iommu(ctx context.Context, e *exam) Finding {
	units, err := e.List("/sys/class/iommu")
	devices := e.talkers(ctx)
	switch {
	case len(devices) == 0 && e.pci().Err != nil:
		return unknown("%s", because(e.pci().Err))
	case len(devices) == 0:
		return none("no GPU or RDMA device on PCI")
	case err != nil:
		return unknown("%s", because(err))
	case len(units) == 0:
		return ok("off, or hidden from this host")
	}
	kinds := map[string][]string{}
	for _, d := range devices {
		kind := e.Says(fabric.DeviceFile(d.Address, "iommu_group/type"))
		kinds[kind] = append(kinds[kind], d.Address)
	}
	var translating []string
	for kind, addresses := range kinds {
		if kind != "" && kind != "identity" {
			translating = append(translating, fmt.Sprintf("%s: %s", kind, strings.Join(addresses, ", ")))
		}
	}
	slices.Sort(translating)
	switch {
	case len(translating) > 0:
		return warn("the IOMMU translates for %s", strings.Join(translating, "; ")).
			remedy("on a host with one user, set iommu=pt on the kernel command line")
	case len(kinds[""]) > 0:
		return unknown("the groups of %s have no type", strings.Join(kinds[""], ", "))
	}
	return ok("on, and passes through for GPUs and NICs")
}

// The access control services capability in the extended configuration space (PCI
// Express Base Specification, 7.7.11).
const (
	extended    = 0x100
	idOfACS     = 0x000d
	acsControl  = 6                  // offset of the control register
	acsRedirect = 1<<2 | 1<<3 | 1<<4 // request redirect, completion redirect, upstream forwarding
)

var errHidden = errors.New("only root can read the extended configuration space")

// redirects reports whether a bridge redirects traffic between the devices below it to
// the processor.
func redirects(config []byte) (bool, error) {
	if len(config) <= extended {
		return false, errHidden
	}
	seen := 0
	for at := extended; at >= extended && at+8 <= len(config) && seen < 64; seen++ {
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == idOfACS {
			return binary.LittleEndian.Uint16(config[at+acsControl:])&acsRedirect != 0, nil
		}
		at = int(head >> 20)
	}
	return false, nil // a bridge without the capability redirects nothing
}

// acs reads the bridges above GPUs and NICs.
func acs(ctx context.Context, e *exam) Finding {
	devices := e.talkers(ctx)
	bridges := fabric.Bridges(devices)
	switch {
	case len(devices) == 0 && e.pci().Err != nil:
		return unknown("%s", because(e.pci().Err))
	case len(bridges) == 0:
		return none("no bridge above a GPU or an RDMA device")
	}
	var on []string
	var hidden error
	for _, address := range bridges {
		config, err := e.Read(fabric.DeviceFile(address, "config"))
		redirected := false
		if err == nil {
			redirected, err = redirects(config)
		}
		if err != nil {
			hidden = err
		}
		if redirected {
			on = append(on, address)
		}
	}
	switch {
	case len(on) > 0:
		return warn("%d of %s send traffic between devices to the processor", len(on), count(len(bridges), "bridge")).
			remedy("on a host with one user, switch ACS off in the firmware, or for each bridge: setpci -s ADDRESS ECAP_ACS+6.w=0000").
			detail(on...)
	case hidden != nil:
		return unknown("%s", because(hidden)).remedy("run as root")
	}
	return ok("%s, none redirects", count(len(bridges), "bridge"))
}
