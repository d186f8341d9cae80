package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/machine/fabric"
)

// rdma checks which ports are active, and whether programs can access them.
func rdma(_ context.Context, e *exam) Finding {
	names, err := e.List(fabric.RDMADir)
	if err != nil {
		if e.Exists("/sys/class/net") {
			return none("no RDMA device")
		}
		return unknown("/sys/class cannot be read")
	}
	if len(names) == 0 {
		return none("no RDMA device")
	}
	var lines, active []string
	ports := 0
	for _, d := range fabric.ReadRDMA(e.Host) {
		for _, p := range d.Ports {
			ports++
			lines = append(lines, fmt.Sprintf("%s port %s: %s, %s, %s, firmware %s", d.Name, p.Number, p.State, p.Rate, p.Layer, d.Firmware))
			if p.State == "ACTIVE" {
				active = append(active, p.Layer+" "+p.Rate)
			}
		}
	}
	text := fmt.Sprintf("%s, %d of %s active", count(len(names), "device"), len(active), count(ports, "port"))
	if len(active) > 0 {
		text += ": " + tally(active)
	}
	switch {
	case len(active) == 0:
		return warn("%s", text).remedy("check cables, switch and subnet manager (InfiniBand), or set the interface up (Ethernet): ibstat, rdma link").detail(lines...)
	case len(e.Glob("/dev/infiniband/uverbs*")) == 0:
		return warn("%s; no /dev/infiniband/uverbs*, so no program reaches them", text).
			remedy("load the module ib_uverbs; give a container the device /dev/infiniband").detail(lines...)
	}
	return ok("%s", text).detail(lines...)
}

// privateABI matches the version of rdma-core's private symbols. Its number is the
// release.
var privateABI = regexp.MustCompile(`^IBVERBS_PRIVATE_(\d+)$`)

// verbs reads the symbol versions defined by the library.
func verbs(ctx context.Context, e *exam) Finding {
	file, err := e.library(ctx, "libibverbs.so.1")
	switch {
	case err != nil:
		return unknown("%s", silence("ldconfig", err))
	case file == "" && len(e.Names(fabric.RDMADir)) > 0:
		return warn("RDMA devices, but no libibverbs.so.1").remedy("install libibverbs and its providers (Debian and Ubuntu: apt-get install libibverbs1 ibverbs-providers)")
	case file == "":
		return none("no libibverbs.so.1 and no RDMA device")
	}
	lib, err := e.elf(file)
	if err != nil {
		return unknown("%s: %v", file, err)
	}
	newest, release := "", ""
	canDMABUF := false
	for _, s := range lib.Exported {
		if v, is := strings.CutPrefix(s.Version, "IBVERBS_"); is && !strings.HasPrefix(v, "PRIVATE") && elf.CompareVersions(v, newest) > 0 {
			newest = v
		}
		if m := privateABI.FindStringSubmatch(s.Version); m != nil {
			release = m[1]
		}
		canDMABUF = canDMABUF || s.Name == "ibv_reg_dmabuf_mr"
	}
	if newest == "" {
		return unknown("%s defines no version of IBVERBS", file)
	}
	text := fmt.Sprintf("%s, IBVERBS_%s", file, newest)
	if release != "" {
		text = fmt.Sprintf("%s, rdma-core %s or newer, IBVERBS_%s", file, release, newest)
	}
	if !canDMABUF {
		return warn("%s, without ibv_reg_dmabuf_mr", text).remedy("for GPUDirect RDMA by DMA-BUF, install rdma-core 34 or newer")
	}
	return ok("%s", text)
}

// elf reads a library's dynamic linking information.
func (e *exam) elf(name string) (*elf.File, error) {
	r, done, err := e.Bytes(name)
	if err != nil {
		return nil, err
	}
	defer done()
	return elf.Read(r)
}
