package doctor

import (
	"context"

	"builder/internal/machine/host"
)

// Checks lists every check in the order of the report.
func Checks() []Check {
	return []Check{
		{"engine", Engine, "an engine answers or can be started, and one that runs has the required version", "the address, `docker info`, the state directory, the engine itself", always, engine},
		{"host-packages", Engine, "the programs of the native engine, and pip if it has to fetch uv or bubblewrap, are installed", "`PATH`, `apt-get`", always, hostPackages},
		{"privileges", Engine, "this process is root, may mount and make namespaces, and has control groups", "`CapEff` in `/proc/self/status`, `/sys/fs/cgroup`", nativeEngine, privileges},

		{"disk", Build, "the state directory is writable, on a suitable file system, with 3 GB free", "`access`, `statfs`", always, disk},

		{"gpus", GPU, "GPUs, their driver and the highest CUDA", "`nvidia-smi`, `amd-smi`, `rocm-smi`, PCI, `/proc/driver/nvidia/version`, `/sys/module/amdgpu`", never, gpus},
		{"topology", GPU, "paths between GPUs, and from GPUs to NICs", "links by the tool of the GPUs, `/sys/bus/pci/devices`", never, topology},
		{"numa", GPU, "NUMA nodes, those without memory or CPUs, and whether the kernel moves pages between them", "`/sys/devices/system/node`, `numa_balancing`", never, numa},

		{"rdma", Fabric, "RDMA devices: state, rate, link layer, firmware", "`/sys/class/infiniband`, `/dev/infiniband`", never, rdma},
		{"verbs", Fabric, "the verbs library, its version, and the version that NCCL and RCCL link", "`ldconfig -p`, the name of its file, the libraries' bytes", never, verbs},
		{"peer-memory", Fabric, "NICs can read and write the memory of GPUs", "`nvidia_peermem`, `memory_peers`, kernel and its options for DMA-BUF", never, peerMemory},
		{"memlock", Fabric, "memory can be locked for RDMA", "`/proc/self/limits`", never, memlock},

		{"nccl", Libraries, "NCCL libraries and their versions", "`ldconfig -p`, places of CUDA, packages of `python3`; their bytes", never, nccl},
		{"rccl", Libraries, "RCCL libraries and their versions", "`ldconfig -p`, places of ROCm, packages of `python3`; their bytes", never, rccl},
	}
}

// Work is the work to examine the host for.
type Work struct {
	Home   string // absolute path of the state directory, which may be missing; "" without one
	Engine EngineState
	Recipe *Needs // nil: check the engine only
}

// EngineKind is the kind of engine that runs builds.
type EngineKind string

// The kinds of engines.
const (
	Named     EngineKind = "named"     // given by address
	Container EngineKind = "container" // in a running Docker or Podman
	Native    EngineKind = "native"    // builder's own, below the state directory
)

// An EngineState describes the engine without starting it, or the engines given by
// address.
type EngineState struct {
	Kind      EngineKind
	Address   string        // of the given engine, or of the native engine
	Program   string        // docker or podman
	Image     string        // the engine's image in Docker or Podman, or the image to pull; "" is unknown
	Holds     bool          // Docker or Podman has the image
	Wanted    string        // the version required by builder
	From      string        // the place of BUILDER_ENGINE_IMAGE, where a run gets the engine if it has none; "" if none is set
	Built     bool          // native: its programs are built
	Running   bool          // native
	Current   bool          // native: the running engine is the wanted one and answers
	Programs  []host.Needed // the programs that a run needs from the host
	NoInstall bool          // do not install missing host packages
	// Version queries the version of a running engine. It is nil if this host cannot
	// query it.
	Version func(ctx context.Context, address string) (string, error)
}

// Needs are the requirements of a recipe's preferred cell.
type Needs struct {
	Name, Cell string
	CUDA       string // target release, empty if none
}

// Conditions under which a check is needed.

func never(Work) bool          { return false }
func always(Work) bool         { return true }
func nativeEngine(w Work) bool { return w.Engine.Kind == Native }
