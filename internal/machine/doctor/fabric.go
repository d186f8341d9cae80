package doctor

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"builder/internal/base/size"
	"builder/internal/files/elf"
	"builder/internal/machine/host"
)

// A nic is an RDMA device.
type nic struct {
	name     string // mlx5_0
	address  string // PCI address; "" for a software device
	firmware string // firmware version
	ports    []port
}

// A port is a port of a NIC.
type port struct {
	number string
	state  string // ACTIVE
	rate   string // 400 Gb/sec (4X NDR)
	layer  string // InfiniBand or Ethernet
}

// rdmaDir has an entry for each RDMA device.
const rdmaDir = "/sys/class/infiniband"

// readRDMA reads all devices and ports.
func readRDMA(h host.Host) []nic {
	var all []nic
	line := func(parts ...string) string { return host.FirstLine(h.Says(path.Join(parts...))) }
	for _, name := range h.Names(rdmaDir) {
		dir := path.Join(rdmaDir, name)
		n := nic{name: name, firmware: line(dir, "fw_ver")}
		if target := path.Base(h.Link(path.Join(dir, "device"))); h.Exists(path.Join(pciDir, target)) {
			n.address = target
		}
		for _, number := range h.Names(path.Join(dir, "ports")) {
			dir := path.Join(dir, "ports", number)
			_, state, _ := strings.Cut(line(dir, "state"), ": ") // 4: ACTIVE
			n.ports = append(n.ports, port{number, state, line(dir, "rate"), line(dir, "link_layer")})
		}
		all = append(all, n)
	}
	return all
}

// rdma checks which ports are active, and whether programs can access them.
func rdma(_ context.Context, e *exam) Finding {
	if !e.Exists("/sys/class") {
		return unknown("/sys/class cannot be read")
	}
	devices := readRDMA(e.Host)
	if len(devices) == 0 {
		return none("no RDMA device")
	}
	var lines, active []string
	for _, d := range devices {
		for _, p := range d.ports {
			lines = append(lines, fmt.Sprintf("%s port %s: %s, %s, %s, firmware %s", d.name, p.number, p.state, p.rate, p.layer, d.firmware))
			if p.state == "ACTIVE" {
				active = append(active, p.layer+" "+p.rate)
			}
		}
	}
	text := fmt.Sprintf("%s, %d of %s active", size.Count(len(devices), "device"), len(active), size.Count(len(lines), "port"))
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

// verbsFile matches the file to which libibverbs.so.1 is a link. The numbers are the
// version of its newest functions and the release of rdma-core: libibverbs.so.1.14.44.0 has
// IBVERBS_1.14, and is of 44.
var verbsFile = regexp.MustCompile(`^libibverbs\.so\.1\.(\d+)\.(\d+)\.\d+$`)

// dmabufSince is the first release of rdma-core with ibv_reg_dmabuf_mr.
const dmabufSince = 34

// verbs reads the release of the library that NCCL uses to reach RDMA devices, and compares
// it with what the installed NCCL and RCCL need.
func verbs(_ context.Context, e *exam) Finding {
	linked, err := e.linked()
	if err != nil {
		return unknown("%s", silence("ldconfig", err))
	}
	files := linked["libibverbs.so.1"]
	devices := len(e.Names(rdmaDir)) > 0
	switch {
	case len(files) == 0 && devices:
		return warn("RDMA devices, but no libibverbs.so.1").remedy("install libibverbs and its providers (Debian and Ubuntu: apt-get install libibverbs1 ibverbs-providers)")
	case len(files) == 0:
		return none("no libibverbs.so.1 and no RDMA device")
	}
	m := verbsFile.FindStringSubmatch(path.Base(e.Link(files[0])))
	if m == nil {
		return unknown("%s, of an unknown release of rdma-core", files[0])
	}
	text := fmt.Sprintf("%s, rdma-core %s", files[0], m[2])
	needy, needed, functions := e.newestVerbs()
	release, err := strconv.Atoi(m[2])
	switch {
	case elf.CompareVersions(needed, "1."+m[1]) > 0:
		return warn("%s, has IBVERBS_1.%s; %s needs IBVERBS_%s (%s) and does not load", text, m[1], needy, needed, strings.Join(functions, ", ")).
			remedy("install a newer rdma-core, or an NCCL that opens libibverbs at run time (`builder plan nccl --rdma dlopen`)")
	case err != nil || release < dmabufSince:
		return warn("%s, without ibv_reg_dmabuf_mr", text).
			remedy("for GPUDirect RDMA by DMA-BUF, install rdma-core %d or newer", dmabufSince)
	}
	if needy != "" {
		text += fmt.Sprintf("; it has all that %s links, up to IBVERBS_%s", needy, needed)
	}
	return ok("%s", text)
}

// newestVerbs returns the installed NCCL or RCCL that links the newest functions of
// libibverbs, their version ("1.8" for IBVERBS_1.8) and their names.
func (e *exam) newestVerbs() (file, version string, functions []string) {
	for _, soname := range []string{"libnccl.so.2", "librccl.so.1"} {
		files, _ := e.libraries(soname)
		for _, name := range files {
			library, err := readBytes(e, name, elf.Read)
			if err == nil && elf.CompareVersions(library.Floors["IBVERBS"], version) > 0 {
				file, version, functions = name, library.Floors["IBVERBS"], nil
				for _, s := range library.Undefined {
					if s.Version == "IBVERBS_"+version {
						functions = append(functions, s.Name)
					}
				}
			}
		}
	}
	return file, version, functions
}

// peerFiles match the files checked by NCCL and RCCL. They exist if a kernel module gives
// NICs access to GPU memory: nvidia_peermem, nv_mem of nv_peer_mem, or amdkfd.
var peerFiles = []string{
	"/sys/module/nvidia_peermem/version", "/sys/kernel/mm/memory_peers/*/version",
	"/sys/kernel/memory_peers/amdkfd/version", "/sys/memory_peers/amdkfd/version",
}

// peerMemory checks how a NIC can access the memory of a GPU: by a peer memory module,
// or by the kernel's DMA-BUF.
func peerMemory(_ context.Context, e *exam) Finding {
	gpus, _ := e.tools() // the kernel names NVIDIA's driver without a tool
	nvidia := e.Exists(nvidiaVersion) || len(gpus.GPUs) > 0 && !gpus.AMD
	switch {
	case !e.Exists("/sys/class"):
		return unknown("/sys/class cannot be read")
	case !nvidia && !gpus.AMD:
		return none("no GPU with a driver")
	case len(e.Names(rdmaDir)) == 0:
		return none("no RDMA device")
	}
	for _, pattern := range peerFiles {
		if found := e.Glob(pattern); len(found) > 0 {
			return ok("%s is loaded", path.Base(path.Dir(found[0])))
		}
	}
	if nvidia {
		return e.dmabufOfNVIDIA()
	}
	return unknown("no module for peer memory; whether kernel %s has DMA-BUF for AMD is in its options", e.Kernel()).
		remedy("look for CONFIG_DMABUF_MOVE_NOTIFY=y and CONFIG_PCI_P2PDMA=y in /boot/config-%s, or install amdgpu-dkms with the RDMA stack of the NIC's vendor", e.Kernel())
}

// dmabufOfNVIDIA checks for the open kernel module, and for DMA-BUF export to NICs,
// which needs kernel 5.12 or newer.
func (e *exam) dmabufOfNVIDIA() Finding {
	open := strings.Contains(e.Says(nvidiaVersion), "Open Kernel Module")
	numbers, _, _ := strings.Cut(e.Kernel(), "-")
	why := "NVIDIA's module is not the open one"
	switch {
	case !e.Exists(nvidiaVersion):
		return unknown("no nvidia_peermem; %s is missing, so it is unknown whether the module is the open one", nvidiaVersion)
	case open && numbers == "":
		return unknown("no nvidia_peermem; the release of the kernel is unknown")
	case open && elf.CompareVersions(numbers, "5.12") >= 0:
		return ok("DMA-BUF: NVIDIA's open module on kernel %s", e.Kernel())
	case open:
		why = fmt.Sprintf("kernel %s is older than 5.12", e.Kernel())
	}
	return warn("no nvidia_peermem and no DMA-BUF: %s", why).
		remedy("run modprobe nvidia_peermem, or use NVIDIA's open kernel module on Linux 5.12 or newer")
}

var lockedMemory = regexp.MustCompile(`(?m)^Max locked memory\s+(\S+)`)

// memlock checks the limit of locked memory of this process: RDMA locks the buffers of
// every connection. The limit applies to root too if CAP_IPC_LOCK is missing.
func memlock(_ context.Context, e *exam) Finding {
	text, err := e.Text("/proc/self/limits")
	if err != nil {
		return unknown("%s", because(err))
	}
	m := lockedMemory.FindStringSubmatch(text)
	if m == nil {
		return unknown("/proc/self/limits has no locked memory")
	}
	if m[1] == "unlimited" {
		return ok("unlimited")
	}
	limit, err := strconv.ParseInt(m[1], 10, 64)
	switch {
	case err != nil:
		return unknown("/proc/self/limits: %s is not a size", m[1])
	case len(e.Names(rdmaDir)) == 0:
		return none("%s, and no RDMA device", size.Text(limit))
	}
	return warn("%s", size.Text(limit)).
		remedy("ulimit -l unlimited: `* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container")
}
