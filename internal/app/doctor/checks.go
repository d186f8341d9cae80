package doctor

// Checks lists every check in the order of the report.
func Checks() []Check {
	return []Check{
		{"engine", Engine, "an engine answers or can be started", "the address, `docker info`, the state directory", always, engine},
		{"engine-version", Engine, "the engine has the required version", "the engine itself, the images of its containers", always, engineVersion},
		{"host-packages", Engine, "the programs of the native engine are installed", "`PATH`, the folders of CNI plugins, `apt-get`", nativeEngine, hostPackages},
		{"privileges", Engine, "this process can make namespaces and mounts", "`CapEff` in `/proc/self/status`, `/proc/self/ns`", nativeEngine, privileges},
		{"user-namespaces", Engine, "users without privileges can make namespaces", "`/proc/sys/user`, `/proc/sys/kernel`", never, userNamespaces},
		{"overlayfs", Engine, "the kernel has overlayfs, and the state directory supports it", "`/proc/filesystems`, modules of the kernel, mounts", nativeEngine, overlayfs},
		{"cgroups", Engine, "control groups are mounted, to limit builds and end them as a group", "`/proc/self/mountinfo`, `/sys/fs/cgroup`", nativeEngine, cgroups},

		{"state-directory", Build, "the state directory is writable and on a suitable file system", "`access`, mounts", always, stateDirectory},
		{"disk", Build, "at least 3 GB of free disk", "`statfs` of the state directory", always, disk},
		{"locks", Build, "processes that use the state directory now", "`/proc/locks`", never, locks},
		{"store", Build, "files in the store", "the state directory", never, storeSize},
		{"cores", Build, "processors available to a build", "`Cpus_allowed_list`, quota of the control group", never, cores},
		{"memory", Build, "memory for the peak of the build", "`/proc/meminfo`, limit of the control group, `memory` of the recipe", localBuild, memory},

		{"mirror", Network, "a Debian archive answers", "`BUILDER_MIRROR_DEBIAN`, the host's apt configuration", somethingComes, mirror},
		{"python-index", Network, "the Python package index answers", "the configuration of uv and pip", somethingComes, pythonIndex},
		{"upstream", Network, "repositories and registries of the recipe answer", "addresses of the recipe and its images", reached, upstream},
		{"clock", Network, "the clock agrees with the servers", "`Date` of the answers", somethingComes, clock},

		{"nvidia", GPU, "NVIDIA GPUs, their driver and the highest CUDA", "PCI, `/proc/driver/nvidia/version`, `nvidia-smi`", never, nvidia},
		{"amd", GPU, "AMD GPUs, their driver and the highest ROCm", "PCI, `/sys/class/kfd`, `/sys/module/amdgpu/version`, `amd-smi`, `rocm-smi`", never, amd},
		{"topology", GPU, "paths between GPUs, and from GPUs to NICs", "`/sys/bus/pci/devices`, links of GPUs by their tool and by `/sys/class/kfd`", never, topology},
		{"numa", GPU, "NUMA nodes, and whether the kernel moves pages between them", "`/sys/devices/system/node`, `numa_balancing`", never, numa},

		{"rdma", Fabric, "RDMA devices: state, rate, link layer, firmware", "`/sys/class/infiniband`, `/dev/infiniband`", never, rdma},
		{"verbs", Fabric, "the verbs library and its version", "`ldconfig -p`, versions of its symbols", never, verbs},
		{"peer-memory", Fabric, "NICs can read and write the memory of GPUs", "`nvidia_peermem`, `memory_peers`, kernel and its options for DMA-BUF", never, peerMemory},
		{"rccl-choice", Fabric, "RCCL's transports between GPUs and to NICs, with reasons", "`/sys/class/kfd`, `memory_peers`, `/proc/kallsyms`, kernel and its options, release of RCCL", never, rcclChoice},
		{"memlock", Fabric, "memory can be locked for RDMA", "`/proc/self/limits`", never, memlock},
		{"hugepages", Fabric, "huge pages", "`/proc/meminfo`, `transparent_hugepage`", never, hugepages},
		{"iommu", Fabric, "the IOMMU does not translate for GPUs and NICs", "`/sys/class/iommu`, `/sys/kernel/iommu_groups`", never, iommu},
		{"acs", Fabric, "PCIe switches let devices talk to each other directly", "configuration space of the bridges above GPUs and NICs", never, acs},

		{"nccl", Libraries, "NCCL libraries and their versions", "`ldconfig -p`, places of CUDA, packages of `python3`; their bytes", never, nccl},
		{"rccl", Libraries, "RCCL libraries and their versions", "`ldconfig -p`, places of ROCm, packages of `python3`; their bytes", never, rccl},
		{"mpi", Libraries, "an MPI and its version", "`mpirun --version`", never, mpi},
	}
}
