package gate

import (
	"fmt"
	"slices"
	"strings"

	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// running lists the gates that import the extension.
const running = "import check-build built-flags launcher allreduce-2 train-step"

// cannotImport sets the answers of a container in which the extension does not load.
// The listing is that of Horovod 0.28.1, which always ticks PyTorch.
func (s *specimen) cannotImport(why string) {
	traceback := "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n" + why + "\n"
	s.box.answers["import"] = Result{Exit: 1, Output: traceback}
	s.box.answers["check-build"] = Result{Output: strings.NewReplacer("[X] TensorFlow", "[ ] TensorFlow", "[X] MPI", "[ ] MPI", "[X] NCCL", "[ ] NCCL").Replace(listing)}
	s.box.answers["built-flags"] = Result{Exit: 1, Output: traceback}
	s.box.end = ended(1, traceback)
}

// ended lets every rank end early.
func ended(exit int, log string) func(launch, *ranksEnd) {
	return func(_ launch, e *ranksEnd) {
		e.Exit, e.Log = at(exit), log
		for _, r := range e.Ranks {
			*r = rankEnd{Exit: at(exit)}
		}
	}
}

// replace changes the output of a gate's command.
func (s *specimen) replace(gate string, pairs ...string) {
	answer := s.box.answers[gate]
	answer.Output = strings.NewReplacer(pairs...).Replace(answer.Output)
	s.box.answers[gate] = answer
}

// drop removes a needed library and the symbols used from it.
func (s *specimen) drop(soname, prefix string) {
	l := s.library()
	l.Needed = slices.DeleteFunc(slices.Clone(l.Needed), func(n string) bool { return n == soname })
	l.Undefined = slices.DeleteFunc(slices.Clone(l.Undefined), func(u elftest.Symbol) bool { return strings.HasPrefix(u.Name, prefix) })
}

// relink replaces a needed library by another.
func (s *specimen) relink(from, to string) {
	l := s.library()
	l.Needed = slices.Clone(l.Needed)
	l.Needed[slices.Index(l.Needed, from)] = to
}

// badBuilds lists bad wheels that Horovod's build makes without an error message.
func badBuilds() []bad {
	const gpuDevice = "_ZN10tensorflow7functor11DenseUpdateIN5Eigen9GpuDeviceEhLNS_15DenseUpdateTypeE2E"
	return []bad{
		refused("Horovod built against the CPU package of its framework", horovodROCm, func(s *specimen) {
			s.library().Undefined = append(s.library().Undefined, elftest.Named(gpuDevice)...)
			s.cannotImport("ImportError: mpi_lib.so: undefined symbol: " + gpuDevice)
		}, "import", "undefined symbol: _ZN10tensorflow7functor11DenseUpdate", "does not fit the installed framework",
			"elf-symbols check-build built-flags launcher allreduce-2 train-step"),
		refused("Horovod for the CPU: its build had no GPU operations", horovodROCm, func(s *specimen) {
			s.drop("librccl.so.1", "nccl")
			s.drop("libamdhip64.so.5", "hip")
			s.library().Sections = nil
			s.replace("check-build", "[X] NCCL", "[ ] NCCL")
			s.replace("built-flags", "21304", "0", `"rocm": "true"`, `"rocm": "false"`)
		}, "elf-needed", "does not need librccl.so.1", "read the link lines", "device-code check-build built-flags"),
		refused("a wheel without an extension: its build did not find the framework", horovodROCm, func(s *specimen) {
			s.libraries = nil
			s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_lib'")
		}, "extension-present", "0 files match horovod/tensorflow/mpi_lib*.so, expected 1", "HOROVOD_WITH_<FRAMEWORK>=1",
			"elf-needed cpu-isa build-paths device-code elf-symbols "+running),
		refused("the extension of another framework", horovodROCm, func(s *specimen) {
			s.libraries = map[string]*elftest.Library{"horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so": s.library()}
			s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_lib'")
		}, "extension-present", "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so was not requested", "HOROVOD_WITH_<FRAMEWORK>=1",
			"wheel-format elf-needed cpu-isa build-paths device-code elf-symbols "+running),
		refused("the extensions of two frameworks in place of one", horovodROCm, func(s *specimen) {
			s.libraries["horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"] = s.library()
		}, "extension-present", "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so was not requested", "HOROVOD_WITHOUT_<FRAMEWORK>=1",
			"wheel-format"),
		refused("the extension twice, for two Pythons", horovodROCm, func(s *specimen) {
			s.libraries["horovod/tensorflow/mpi_lib.cpython-310-x86_64-linux-gnu.so"] = s.library()
		}, "extension-present", "2 files match", "look for the first compiler or configure error", "wheel-format"),
		refused("a library under the name of a text", horovodROCm, func(s *specimen) {
			s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: "horovod/tensorflow/op_names.txt", Text: string((&elftest.Library{}).Bytes())})
		}, "extension-present", "horovod/tensorflow/op_names.txt is native code that nobody promised", "leave it out, or promise it"),
		refused("an extension of another framework by .data", horovodROCm, func(s *specimen) {
			s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: s.wheel.Info()[:len(s.wheel.Info())-len("dist-info")] + "data/platlib/horovod/torch/mpi_lib_v2.so", Text: string((&elftest.Library{}).Bytes())})
		}, "extension-present", "horovod/torch/mpi_lib_v2.so is native code that nobody promised", "leave it out, or promise it"),
		refused("Horovod without NCCL or RCCL", horovodROCm, func(s *specimen) {
			s.drop("librccl.so.1", "nccl")
			s.replace("check-build", "[X] NCCL", "[ ] NCCL")
			s.replace("built-flags", "21304", "0")
		}, "check-build", "tensor operation [ ] NCCL", "a part without [X]", "elf-needed built-flags"),
		refused("Horovod without a controller: neither MPI nor Gloo", horovodROCm, func(s *specimen) {
			s.drop("libmpi.so.40", "MPI_")
			s.replace("check-build", "[X] MPI\n    [ ] Gloo\n\n", "[ ] MPI\n    [ ] Gloo\n\n")
			s.replace("built-flags", `"mpi": "true"`, `"mpi": "false"`)
			s.box.end = ended(1, "ValueError: No controller was built\n")
		}, "check-build", "controller [ ] MPI", "a part without [X]", "elf-needed built-flags launcher allreduce-2 train-step"),
		refused("an unrequested controller", horovodROCm, func(s *specimen) {
			s.replace("check-build", "[ ] Gloo\n\n", "[X] Gloo\n\n")
			s.replace("built-flags", `"gloo": "false"`, `"gloo": "true"`)
		}, "check-build", "controller [X] Gloo was not requested", "a part without [X]", "built-flags"),
		refused("Horovod built against another MPI", horovodROCm, func(s *specimen) {
			s.relink("libmpi.so.40", "libmpi.so.12")
			s.cannotImport("ImportError: libmpi.so.12: cannot open shared object file: No such file or directory")
		}, "elf-needed", "does not need libmpi.so.40; it needs libmpi.so.12", "other libraries or paths", "elf-symbols "+running),
		refused("RCCL of another major version", horovodROCm, func(s *specimen) {
			s.relink("librccl.so.1", "librccl.so.2")
			s.cannotImport("ImportError: librccl.so.2: cannot open shared object file: No such file or directory")
		}, "elf-needed", "does not need librccl.so.1", "other libraries or paths", "elf-symbols "+running),
		refused("RCCL of another release than the cell's", horovodROCm, func(s *specimen) { s.replace("built-flags", "21304", "21806") },
			"built-flags", "nccl_built() is 21806, which is version 2.18.6; expected 2.13.4", "another stack than the cell's"),
		refused("Horovod for CUDA in place of ROCm", horovodROCm, func(s *specimen) {
			other := horovodCUDA()
			s.libraries[s.extension] = other.library()
			s.box.libraries = other.box.libraries
			s.replace("built-flags", `"rocm": "true"`, `"rocm": "false"`, `"cuda": "false"`, `"cuda": "true"`, "21304", "22203")
		}, "elf-needed", "needs libcudart.so*, which is forbidden", "read the link lines", "wheel-format device-code built-flags"),
	}
}

// badTargets lists builds for other GPUs.
func badTargets() []bad {
	amd := func(targets ...string) func(*specimen) {
		return func(s *specimen) { s.library().Sections = []elftest.Section{elftest.HIP(targets...)} }
	}
	nvidia := func(targets ...string) func(*specimen) {
		return func(s *specimen) { s.library().Sections = []elftest.Section{elftest.CUDA(targets...)} }
	}
	row := func(what string, of func() *specimen, change func(*specimen), have, promised string) bad {
		return refused(what, of, change,
			"device-code", fmt.Sprintf("holds code for [%s], expected [%s]", have, promised), "the compiler chose its own targets")
	}
	kernels := func(what string, code []byte, says, do string) bad {
		return refused(what, horovodKernels, func(s *specimen) { s.library().Sections = []elftest.Section{bundled(code)} }, "device-functions", says, do)
	}
	const cuda, nccl = "compute_90 sm_90", "sm_100f sm_90"
	gfx942 := codeObject(memcpyKernel, scaleKernel)
	gfx942[48] = 0x4c // the flags
	return []bad{
		row("no code for any GPU: the fat binary was stripped", horovodROCm, func(s *specimen) { s.library().Sections = nil }, "", "gfx90a"),
		row("a bundle without code", horovodROCm, amd(), "", "gfx90a"),
		row("code for another gfx target", horovodROCm, amd("gfx1030"), "gfx1030", "gfx90a"),
		row("code for one gfx target more", horovodROCm, amd("gfx90a", "gfx906"), "gfx906 gfx90a", "gfx90a"),
		row("code for the generic gfx target alone", horovodROCm, amd("gfx9-generic"), "gfx9-generic", "gfx90a"),
		row("code for one mode of the gfx target", horovodROCm, amd("gfx90a:xnack+"), "gfx90a:xnack+", "gfx90a"),
		row("code for another sm target", horovodCUDA, nvidia("sm_80", "compute_80"), "compute_80 sm_80", cuda),
		row("code for one sm target more", horovodCUDA, nvidia("sm_90", "sm_80", "compute_90"), "compute_90 sm_80 sm_90", cuda),
		row("only PTX, which the driver compiles at the first start", horovodCUDA, nvidia("compute_90"), "compute_90", cuda),
		row("no PTX for later GPUs", horovodCUDA, nvidia("sm_90"), "sm_90", cuda),
		row("code for only one chip of the sm target", horovodCUDA, nvidia("sm_90a", "compute_90"), "compute_90 sm_90a", cuda),
		row("NCCL without the kernels of one family", ncclVerbs, nvidia("sm_90"), "sm_90", nccl),
		kernels("code of one byte for the gfx target", []byte{0}, "container 0: unexpected EOF", "not-measured never counts as a pass").unmeasured(),
		kernels("code without a kernel for the gfx target", codeObject(), "holds no function for any GPU", "returns wrong sums"),
		kernels("code without one of its kernels for the gfx target", codeObject(memcpyKernel), "has no match in gfx90a (1 kernels and 0 other functions) for *scale_buffer_k*", "returns wrong sums"),
		kernels("the code of another gfx target under the label of the promised one", gfx942, "code for gfx90a: its flags name the target 0x4c gfx942", "not-measured never counts as a pass").unmeasured(),
		refused("a fat binary without valid content", horovodROCm, func(s *specimen) {
			s.library().Sections = []elftest.Section{{Name: ".hip_fatbin", Data: []byte("junk")}}
		}, "device-code", "it holds no known container", "not-measured never counts as a pass").unmeasured(),
	}
}

// badLinks lists libraries with dependencies or search paths missing on other hosts.
func badLinks() []bad {
	path := func(what, runpath, why string) bad {
		return refused(what, horovodCUDA, func(s *specimen) { s.library().Runpath = "/usr/lib/x86_64-linux-gnu/openmpi/lib:" + runpath },
			"elf-needed", fmt.Sprintf("looks for libraries in %q, %s", runpath, why), "libraries or paths")
	}
	return []bad{
		path("RUNPATH into the build tree", "/build/src/build/lib", "a directory of the build machine"),
		path("RUNPATH into site-packages of the build environment", "/opt/venv/lib/python3.11/site-packages/torch/lib", "a directory of the build machine"),
		path("RUNPATH out of site-packages", "$ORIGIN/../../../../build/lib", "which leads out of site-packages"),
		path("RUNPATH to the stubs of the toolkit", "/usr/local/cuda/lib64/stubs", "the toolkit's directory of libraries without code"),
		path("RUNPATH to the directory in which the program starts", "", "relative to the directory in which the program starts"),
		refused("RPATH into the build tree", horovodROCm, func(s *specimen) { s.library().Rpath = "/tmp/build-env/lib" },
			"elf-needed", `looks for libraries in "/tmp/build-env/lib", a directory of the build machine`, "read the link lines"),
		refused("the driver library is linked", horovodCUDA, func(s *specimen) {
			s.library().Needed = append(s.library().Needed, "libcuda.so.1")
			s.cannotImport("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory")
			s.replace("check-build", "[X] PyTorch", "[ ] PyTorch")
		}, "elf-needed", "needs libcuda.so*, which is forbidden", "read the link lines", "elf-symbols "+running),
		refused("a second library of the wheel needs the driver library", horovodCUDA, func(s *specimen) {
			s.libraries["horovod/lib/libhelper.so.1"] = &elftest.Library{Needed: []string{"libcuda.so.1"}}
		}, "elf-needed", "horovod/lib/libhelper.so.1 needs libcuda.so*, which is forbidden", "read the link lines", "extension-present"),
		refused("a link to the CUDA runtime, which must be inside", ncclVerbs, func(s *specimen) {
			s.library().Needed = append(s.library().Needed, "libcudart.so.13")
			s.box.libraries["libcudart.so.13"] = []string{}
		}, "elf-needed", "needs libcudart.so*, which is forbidden", "read the link lines"),
		refused("an extension for another machine", horovodROCm, func(s *specimen) {
			s.library().Machine = "aarch64"
			s.cannotImport("ImportError: mpi_lib.so: cannot open shared object file: No such file or directory")
		}, "wheel-format", "is for aarch64, and the tag is cp311-cp311-linux_x86_64", "build it again", "cpu-isa "+running),
		refused("an extension with the content of no library", horovodROCm, func(s *specimen) {
			s.libraries = nil
			s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: s.extension, Text: strings.Repeat("version https://git-lfs\n", 9)})
			s.cannotImport("ImportError: mpi_lib.so: invalid ELF header")
		}, "elf-needed", "not an ELF file: wrong magic", "not-measured never counts as a pass",
			"cpu-isa build-paths device-code elf-symbols "+running).unmeasured(),
		refused("a missing symbol, bound at its first call", horovodROCm, func(s *specimen) {
			s.library().Undefined = append(s.library().Undefined, elftest.Named("ncclCommRegister")...)
		}, "elf-symbols", "requires 1 symbols missing from all its libraries: ncclCommRegister", "missing from the link line"),
		refused("a symbol of a newer release than the run-time image's", horovodROCm, func(s *specimen) {
			s.library().Undefined = append(s.library().Undefined, elftest.From("libamdhip64.so.5", "hip_6.0", "hipMalloc")...)
			s.cannotImport("ImportError: libamdhip64.so.5: version `hip_6.0' not found (required by mpi_lib.so)")
		}, "elf-symbols", "hipMalloc@hip_6.0", "the run-time image has an older one", running),
		refused("a library missing in the run-time image", horovodROCm, func(s *specimen) {
			delete(s.box.libraries, "librccl.so.1")
			s.cannotImport("ImportError: librccl.so.1: cannot open shared object file: No such file or directory")
		}, "elf-symbols", "needs librccl.so.1, which cannot be loaded", "add its package to the packages of that image", running),
		refused("an extension without its dynamic symbols", horovodROCm, func(s *specimen) {
			s.library().Undefined, s.library().Exported = nil, nil
			s.cannotImport("ImportError: dynamic module does not define module export function")
		}, "elf-symbols", "it neither requires nor exports a symbol", "not-measured never counts as a pass",
			"cpu-isa "+running).unmeasured(),
	}
}
