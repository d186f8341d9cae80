package gate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// The good artifacts match the recipes horovod and nccl and real builds: Horovod 0.28.1
// for ROCm 5.7 and for CUDA 12.4, NCCL 2.29.7 with libibverbs linked and opened at run
// time.

const builtROCm = `{"nccl": "21304", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false", "ddl": "false", "ccl": "false"}`

// Instructions missing in some 64-bit x86 processors.
var (
	avx    = []byte{0xc5, 0xf8, 0x57, 0xc0, 0xc3}             // vxorps xmm0,xmm0,xmm0; ret
	avx2   = []byte{0xc5, 0xfd, 0xef, 0xc0, 0xc3}             // vpxor ymm0,ymm0,ymm0; ret
	avx512 = []byte{0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0, 0xc3} // vpxord zmm0,zmm0,zmm0; ret
)

// horovodROCm returns Horovod for TensorFlow on ROCm.
func horovodROCm() *specimen {
	const extension = "horovod/tensorflow/mpi_lib.cpython-311-x86_64-linux-gnu.so"
	l := &elftest.Library{
		Needed: []string{
			"libmpi.so.40", "libamdhip64.so.5", "librccl.so.1", "libtensorflow_framework.so.2", "libtensorflow_cc.so.2",
			"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6",
		},
		Runpath: "/usr/lib/x86_64-linux-gnu/openmpi/lib",
		Undefined: slices.Concat(
			elftest.From("libc.so.6", "GLIBC_2.38", "__isoc23_strtol"), elftest.From("libc.so.6", "GLIBC_2.2.5", "memcmp", "free"),
			elftest.From("libstdc++.so.6", "GLIBCXX_3.4.32", "_ZSt21ios_base_library_initv"), elftest.From("libamdhip64.so.5", "hip_4.2", "hipMalloc", "hipLaunchKernel"),
			elftest.Named("MPI_Init_thread", "MPI_Allreduce", "ncclAllReduce", "ncclCommInitRank", "_ZN10tensorflow8OpKernelC2EPNS_20OpKernelConstructionE"),
			[]elftest.Symbol{{Name: "__gmon_start__", Weak: true}},
		),
		Exported: []elftest.Symbol{{Name: "horovod_init", Code: avx}, {Name: "horovod_sum_avx2", Code: avx2}},
		Sections: []elftest.Section{elftest.HIP("gfx90a")},
	}
	const version = "0.28.1+rocm5.7.tf2.13.0"
	s := horovod(version, extension, l)
	s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: "horovod/tensorflow/__init__.py"}, wheeltest.File{Name: ballast, Text: noise(60e3)})
	s.expect = recipe.Expect{
		Version:    version,
		Packages:   []string{"horovod"},
		Extensions: []string{"horovod/tensorflow/mpi_lib*.so"},
		DeviceCode: []string{"gfx90a"},
		Import:     []string{"horovod.tensorflow"},
		Frameworks: []string{"TensorFlow"},
		Launcher:   "mpi",
		Gates: recipe.GateSettings{
			"extension-present": extensionSettings{Absent: []string{"horovod/torch/mpi_lib*.so", "horovod/mxnet/mpi_lib*.so"}},
			"elf-needed":        neededSettings{Needed: []string{"librccl.so.1", "libamdhip64.so.*", "libtensorflow_framework.so.2", "libmpi.so.40"}, Forbidden: []string{"libcuda.so*", "libcudart.so*", "libnccl.so*", "libhsakmt.so*"}},
			"cpu-isa":           cpuSettings{Allowed: []string{"avx", "f16c", "fma"}, Dispatched: []string{"*_avx2"}},
			"size":              "40KB..150KB",
			"check-build":       buildSettings{Controllers: []string{"MPI"}, Operations: []string{"NCCL"}},
			"rendezvous":        "sealed",
			"built-flags":       map[string]string{"nccl": "2.13.4", "rocm": "true", "cuda": "false", "mpi": "true", "gloo": "false"},
		},
	}
	s.box.answers["built-flags"] = Result{Output: builtROCm + "\n"}
	s.box.answers["platform"] = Result{Output: frameworkROCm + "\n"}
	s.box.installs(l, map[string]string{"MPI_": "libmpi.so.40", "nccl": "librccl.so.1", "_ZN10tensorflow": "libtensorflow_framework.so.2"})
	return s
}

func horovod(version, extension string, l *elftest.Library) *specimen {
	return &specimen{
		wheel: wheeltest.Wheel{
			Name:  "horovod-" + version + "-cp311-cp311-linux_x86_64.whl",
			Files: []wheeltest.File{{Name: "horovod/__init__.py", Text: "__version__ = '0.28.1'\n"}, {Name: "horovod/metadata.json", Text: "{}\n"}},
		},
		extension: extension,
		libraries: map[string]*elftest.Library{extension: l},
		box: container{answers: map[string]Result{
			"import":      {},
			"check-build": {Output: listing},
			"rendezvous":  {Output: allRequests(nil)},
		}},
	}
}

// horovodCUDA returns Horovod for PyTorch on CUDA.
func horovodCUDA() *specimen {
	const extension = "horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"
	l := &elftest.Library{
		Needed: []string{
			"libmpi.so.40", "libnccl.so.2", "libc10.so", "libtorch_cpu.so", "libtorch_python.so", "libcudart.so.12", "libc10_cuda.so",
			"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6",
		},
		Runpath: "/usr/lib/x86_64-linux-gnu/openmpi/lib",
		Undefined: slices.Concat(
			elftest.From("libc.so.6", "GLIBC_2.38", "__isoc23_strtol"), elftest.From("libcudart.so.12", "libcudart.so.12", "cudaMalloc"),
			elftest.Named("MPI_Init_thread", "ncclAllReduce", "_ZN3c106detail14torchCheckFailEPKcS2_jS2_", "PyErr_SetString"),
		),
		Exported: elftest.Named("horovod_init"),
		Sections: []elftest.Section{elftest.CUDA("sm_90", "compute_90")},
	}
	const version = "0.28.1+cuda12.4.torch2.6.0.sm90"
	s := horovod(version, extension, l)
	s.expect = recipe.Expect{
		Version:    version,
		Packages:   []string{"horovod"},
		Extensions: []string{"horovod/torch/mpi_lib_v2*.so"},
		DeviceCode: []string{"sm_90", "compute_90"},
		Import:     []string{"horovod.torch"},
		Frameworks: []string{"PyTorch"},
		Launcher:   "mpi",
		Gates: recipe.GateSettings{
			"extension-present": extensionSettings{Absent: []string{"horovod/tensorflow/mpi_lib*.so", "horovod/mxnet/mpi_lib*.so"}},
			"elf-needed":        neededSettings{Needed: []string{"libnccl.so.2", "libtorch_cpu.so", "libc10.so", "libmpi.so.40", "libcudart.so.12"}, Forbidden: []string{"libcuda.so*", "libamdhip64.so*", "librccl.so*"}},
			"check-build":       buildSettings{Controllers: []string{"MPI"}, Operations: []string{"NCCL"}},
			"built-flags":       map[string]string{"nccl": "2.22.3", "rocm": "false", "cuda": "true", "mpi": "true", "gloo": "false"},
		},
	}
	s.box.answers["built-flags"] = Result{Output: `{"nccl": "22203", "rocm": "false", "cuda": "true", "mpi": "true", "gloo": "false"}` + "\n"}
	s.box.answers["platform"] = Result{Output: frameworkCUDA + "\n"}
	s.box.installs(l, map[string]string{"MPI_": "libmpi.so.40", "nccl": "libnccl.so.2", "_ZN3c10": "libc10.so", "Py": "libtorch_python.so"})
	return s
}

// ibverbs returns the functions of libibverbs called by NCCL, by version.
func ibverbs() []elftest.Symbol {
	return slices.Concat(
		elftest.From("libibverbs.so.1", "IBVERBS_1.0", "ibv_event_type_str", "ibv_alloc_pd", "ibv_create_qp", "ibv_modify_qp"),
		elftest.From("libibverbs.so.1", "IBVERBS_1.1", "ibv_get_device_list", "ibv_open_device", "ibv_reg_mr", "ibv_dereg_mr", "ibv_create_cq", "ibv_query_port"),
		elftest.From("libibverbs.so.1", "IBVERBS_1.8", "ibv_reg_mr_iova2"), elftest.From("libibverbs.so.1", "IBVERBS_1.12", "ibv_reg_dmabuf_mr"),
	)
}

// ncclVerbs returns NCCL with libibverbs linked.
func ncclVerbs() *specimen {
	const extension = "nvidia/nccl/lib/libnccl.so.2"
	l := &elftest.Library{
		Soname: "libnccl.so.2",
		Needed: []string{"libibverbs.so.1", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6"},
		Undefined: slices.Concat(ibverbs(),
			elftest.From("libc.so.6", "GLIBC_2.38", "__isoc23_strtol"), elftest.From("libc.so.6", "GLIBC_2.2.5", "dlopen")),
		Exported: elftest.Named(functionsOf(ncclExports, "2.29.7")...),
		Texts:    []string{"/tmp/nccl-socket-%d-%lx", "/build/src/src/device", "NCCL version 2.29.7+cuda13.0", "NCCL version %s", "Unknown"},
		Sections: []elftest.Section{elftest.CUDA("sm_90", "sm_100f")},
	}
	s := &specimen{
		wheel: wheeltest.Wheel{
			Name:  "nvidia_nccl_cu13-2.29.7+cuda13.0.verbs.sm90-py3-none-manylinux_2_38_x86_64.whl",
			Files: []wheeltest.File{{Name: "nvidia/nccl/include/nccl.h", Text: "#pragma once\n"}},
		},
		extension: extension,
		libraries: map[string]*elftest.Library{extension: l},
		archive:   archived{name: "nccl_2.29.7+cuda13.0.verbs.sm90_x86_64.txz"},
		box: container{answers: map[string]Result{
			"nccl-load": {Output: `{"code": 0, "version": 22907, "error": "invalid argument"}` + "\n"},
		}},
	}
	s.expect = recipe.Expect{
		Version:     "2.29.7+cuda13.0.verbs.sm90",
		Packages:    []string{"nvidia"},
		Extensions:  []string{extension},
		Library:     extension,
		LibrarySays: "2.29.7+cuda13.0",
		DeviceCode:  []string{"sm_90", "sm_100f"},
		Glibc:       "2.38",
		Gates: recipe.GateSettings{
			"archive":    s.archive.name,
			"elf-needed": neededSettings{Needed: []string{"libibverbs.so.1"}, Forbidden: []string{"libcuda.so*", "libcudart.so*"}},
			"cpu-isa":    cpuSettings{Allowed: []string{"x86-64"}},
			"rdma":       "linked",
		},
	}
	s.box.installs(l, nil)
	return s
}

// ncclDlopen returns an NCCL that opens libibverbs at run time.
func ncclDlopen() *specimen {
	s := ncclVerbs()
	l := s.library()
	l.Needed, l.Undefined = l.Needed[1:], l.Undefined[len(ibverbs()):]
	l.Texts = append(l.Texts, "libibverbs.so", "libibverbs.so.1", "Failed to open libibverbs.so[.1]")
	s.wheel.Name, s.expect.Version = strings.Replace(s.wheel.Name, "verbs", "dlopen", 1), "2.29.7+cuda13.0.dlopen.sm90"
	s.expect.Gates["rdma"] = "dlopened"
	s.expect.Gates["elf-needed"] = neededSettings{Forbidden: []string{"libcuda.so*", "libcudart.so*", "libibverbs.so*"}}
	return s
}

// rccl returns RCCL 6.4.3. Its table of functions ends before that release.
func rccl() *specimen {
	const extension = "rccl/lib/librccl.so.1"
	l := &elftest.Library{
		Soname: "librccl.so.1",
		Needed: []string{"libamdhip64.so.6", "libstdc++.so.6", "libc.so.6"},
		Undefined: slices.Concat(elftest.From("libc.so.6", "GLIBC_2.38", "__isoc23_strtol"),
			elftest.From("libamdhip64.so.6", "hip_4.2", "hipMalloc")),
		Exported: elftest.Named(functionsOf(rcclExports, "2.20.5")...),
		Texts:    []string{"RCCL version : 2.22.3", "HIP version  : 6.4.43484-", "%s-%s\n%s", "libibverbs.so", "libibverbs.so.1"},
		Sections: []elftest.Section{elftest.HIP("gfx942")},
	}
	s := &specimen{
		wheel: wheeltest.Wheel{
			Name:  "rccl-6.4.3+rocm6.4.gfx942-py3-none-linux_x86_64.whl",
			Files: []wheeltest.File{{Name: "rccl/include/rccl/rccl.h", Text: "#pragma once\n"}},
		},
		extension: extension,
		libraries: map[string]*elftest.Library{extension: l},
		archive:   archived{name: "rccl_6.4.3+rocm6.4.gfx942_x86_64.txz"},
		box: container{answers: map[string]Result{
			"nccl-load": {Output: `{"code": 0, "version": 22203, "error": "invalid argument"}` + "\n"},
		}},
	}
	s.expect = recipe.Expect{
		Version:     "6.4.3+rocm6.4.gfx942",
		Packages:    []string{"rccl"},
		Extensions:  []string{extension},
		Library:     extension,
		LibrarySays: "2.22.3",
		DeviceCode:  []string{"gfx942"},
		Glibc:       "2.39",
		Gates: recipe.GateSettings{
			"archive":    s.archive.name,
			"elf-needed": neededSettings{Needed: []string{"libamdhip64.so.*"}, Forbidden: []string{"libcuda.so*", "libibverbs.so*", "librocm_smi64.so*"}, Unopened: []string{"libhsa-runtime64.so"}},
			"cpu-isa":    cpuSettings{Allowed: []string{"x86-64"}},
			"rdma":       "dlopened",
		},
	}
	s.box.installs(l, nil)
	return s
}

// functionsOf lists the exports of the vendor's library of a release.
func functionsOf(table, release string) []string {
	v, err := version.Parse(release)
	if err != nil {
		panic(err)
	}
	_, names, err := exports(table, v)
	if err != nil {
		panic(err) // the table is built in
	}
	return names
}

// ballast is a file to give a wheel the promised size.
const ballast = "horovod/ballast"

// noise returns an incompressible text, always the same.
func noise(size int) string {
	text := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(text)
	return string(text)
}

// withoutGlibc returns a library that needs libc.so.6 and no symbol of it, such as an
// extension that calls only Python's API.
func withoutGlibc() *specimen {
	s := ncclVerbs()
	s.library().Undefined = ibverbs()
	s.box.installs(s.library(), nil)
	return s
}

// withoutLibc returns such a library linked with --as-needed, which drops libc.so.6.
func withoutLibc() *specimen {
	s := withoutGlibc()
	s.library().Needed = slices.DeleteFunc(s.library().Needed, func(name string) bool { return name == "libc.so.6" })
	s.library().Undefined = append(s.library().Undefined, elftest.Symbol{Name: "__cxa_finalize", Weak: true})
	s.box.installs(s.library(), nil)
	return s
}

// The good artifacts, from which the bad ones differ, pass every applicable gate.
func TestGoodArtifacts(t *testing.T) {
	for name, c := range map[string]struct {
		good  *specimen
		gates int
	}{
		"Horovod for ROCm":          {horovodROCm(), 14},
		"Horovod with its kernels":  {horovodKernels(), 15},
		"Horovod for CUDA":          {horovodCUDA(), 11},
		"NCCL, libibverbs linked":   {ncclVerbs(), 11},
		"NCCL, libibverbs dlopened": {ncclDlopen(), 11},
		"RCCL":                      {rccl(), 12},
		"no symbol of glibc":        {withoutGlibc(), 11},
		"not even libc.so.6":        {withoutLibc(), 11},
		"Ray for ROCm":              {rayROCm(), 4},
	} {
		verdicts := c.good.verdicts(t)
		check.That(t, len(verdicts) >= c.gates, "%s: only %d gates apply", name, len(verdicts))
		for _, v := range verdicts {
			judged(t, v, verdict.Pass, "", name)
		}
	}
}

// A library that needs no symbol of glibc is described in one sentence.
func TestEvidenceWithoutGlibc(t *testing.T) {
	s := withoutLibc().subject(t)
	v := glibcFloor.Check(t.Context(), s)
	judged(t, v, verdict.Pass, "requires no versioned symbol of glibc")
	check.That(t, strings.Count(v.Evidence, "requires") == 1, "%s", v.Evidence)
}
