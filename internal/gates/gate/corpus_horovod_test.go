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
func ended(exit int, log string) func(rankJob, *ranksEnd) {
	return func(_ rankJob, e *ranksEnd) {
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
		{
			what: "Horovod built against the CPU package of its framework", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Undefined = append(s.library().Undefined, elftest.Named(gpuDevice)...)
				s.cannotImport("ImportError: mpi_lib.so: undefined symbol: " + gpuDevice)
			},
			gate: "import", says: "undefined symbol: _ZN10tensorflow7functor11DenseUpdate", do: "does not fit the installed framework",
			also: "elf-symbols check-build built-flags launcher allreduce-2 train-step",
		},
		{
			what: "Horovod for the CPU: its build had no GPU operations", of: horovodROCm,
			change: func(s *specimen) {
				s.drop("librccl.so.1", "nccl")
				s.drop("libamdhip64.so.5", "hip")
				s.library().Sections = nil
				s.replace("check-build", "[X] NCCL", "[ ] NCCL")
				s.replace("built-flags", "21304", "0", `"rocm": "true"`, `"rocm": "false"`)
			},
			gate: "elf-needed", says: "does not need librccl.so.1", do: "read the link lines", also: "device-code check-build built-flags",
		},
		{
			what: "a wheel without an extension: its build did not find the framework", of: horovodROCm,
			change: func(s *specimen) {
				s.libraries = nil
				s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_lib'")
			},
			gate: "extension-present", says: "0 files match horovod/tensorflow/mpi_lib*.so, expected 1", do: "HOROVOD_WITH_<FRAMEWORK>=1",
			also: "elf-needed cpu-isa build-paths device-code elf-symbols " + running,
		},
		{
			what: "the extension of another framework", of: horovodROCm,
			change: func(s *specimen) {
				s.libraries = map[string]*elftest.Library{"horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so": s.library()}
				s.cannotImport("ModuleNotFoundError: No module named 'horovod.tensorflow.mpi_lib'")
			},
			gate: "extension-present", says: "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so was not requested", do: "HOROVOD_WITH_<FRAMEWORK>=1",
			also: "wheel-format elf-needed cpu-isa build-paths device-code elf-symbols " + running,
		},
		{
			what: "the extensions of two frameworks in place of one", of: horovodROCm,
			change: func(s *specimen) {
				s.libraries["horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"] = s.library()
			},
			gate: "extension-present", says: "mpi_lib_v2.cpython-311-x86_64-linux-gnu.so was not requested", do: "HOROVOD_WITHOUT_<FRAMEWORK>=1", also: "wheel-format",
		},
		{
			what: "the extension twice, for two Pythons", of: horovodROCm,
			change: func(s *specimen) {
				s.libraries["horovod/tensorflow/mpi_lib.cpython-310-x86_64-linux-gnu.so"] = s.library()
			},
			gate: "extension-present", says: "2 files match", do: "look for the first compiler or configure error", also: "wheel-format",
		},
		{
			what: "Horovod without NCCL or RCCL", of: horovodROCm,
			change: func(s *specimen) {
				s.drop("librccl.so.1", "nccl")
				s.replace("check-build", "[X] NCCL", "[ ] NCCL")
				s.replace("built-flags", "21304", "0")
			},
			gate: "check-build", says: "tensor operation [ ] NCCL", do: "a part without [X]", also: "elf-needed built-flags",
		},
		{
			what: "Horovod without a controller: neither MPI nor Gloo", of: horovodROCm,
			change: func(s *specimen) {
				s.drop("libmpi.so.40", "MPI_")
				s.replace("check-build", "[X] MPI\n    [ ] Gloo\n\n", "[ ] MPI\n    [ ] Gloo\n\n")
				s.replace("built-flags", `"mpi": "true"`, `"mpi": "false"`)
				s.box.end = ended(1, "ValueError: No controller was built\n")
			},
			gate: "check-build", says: "controller [ ] MPI", do: "a part without [X]", also: "elf-needed built-flags launcher allreduce-2 train-step",
		},
		{
			what: "an unrequested controller", of: horovodROCm,
			change: func(s *specimen) {
				s.replace("check-build", "[ ] Gloo\n\n", "[X] Gloo\n\n")
				s.replace("built-flags", `"gloo": "false"`, `"gloo": "true"`)
			},
			gate: "check-build", says: "controller [X] Gloo was not requested", do: "a part without [X]", also: "built-flags",
		},
		{
			what: "Horovod built against another MPI", of: horovodROCm,
			change: func(s *specimen) {
				s.relink("libmpi.so.40", "libmpi.so.12")
				s.cannotImport("ImportError: libmpi.so.12: cannot open shared object file: No such file or directory")
			},
			gate: "elf-needed", says: "does not need libmpi.so.40; it needs libmpi.so.12", do: "other libraries or paths", also: "elf-symbols " + running,
		},
		{
			what: "RCCL of another major version", of: horovodROCm,
			change: func(s *specimen) {
				s.relink("librccl.so.1", "librccl.so.2")
				s.cannotImport("ImportError: librccl.so.2: cannot open shared object file: No such file or directory")
			},
			gate: "elf-needed", says: "does not need librccl.so.1", do: "other libraries or paths", also: "elf-symbols " + running,
		},
		{
			what: "RCCL of another release than the cell's", of: horovodROCm,
			change: func(s *specimen) { s.replace("built-flags", "21304", "21806") },
			gate:   "built-flags", says: "nccl_built() is 21806, which is version 2.18.6; expected 2.13.4", do: "another stack than the cell's",
		},
		{
			what: "Horovod for CUDA in place of ROCm", of: horovodROCm,
			change: func(s *specimen) {
				other := horovodCUDA()
				s.libraries[s.extension] = other.library()
				s.box.libraries = other.box.libraries
				s.replace("built-flags", `"rocm": "true"`, `"rocm": "false"`, `"cuda": "false"`, `"cuda": "true"`, "21304", "22203")
			},
			gate: "elf-needed", says: "needs libcudart.so*, which is forbidden", do: "read the link lines", also: "wheel-format device-code built-flags",
		},
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
		return bad{
			what: what, of: of, change: change, gate: "device-code", do: "the compiler chose its own targets",
			says: fmt.Sprintf("holds code for [%s], expected [%s]", have, promised),
		}
	}
	const cuda, nccl = "compute_90 sm_90", "sm_100f sm_90"
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
		{
			what: "a fat binary without valid content", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Sections = []elftest.Section{{Name: ".hip_fatbin", Data: []byte("junk")}}
			},
			gate: "device-code", blind: true, says: "it holds no known container", do: "not-measured never counts as a pass",
		},
	}
}

// badLinks lists libraries with dependencies or search paths missing on other hosts.
func badLinks() []bad {
	path := func(what, runpath, why string) bad {
		return bad{
			what: what, of: horovodCUDA, change: func(s *specimen) { s.library().Runpath = "/usr/lib/x86_64-linux-gnu/openmpi/lib:" + runpath },
			gate: "elf-needed", says: fmt.Sprintf("looks for libraries in %q, %s", runpath, why), do: "libraries or paths",
		}
	}
	return []bad{
		path("RUNPATH into the build tree", "/build/src/build/lib", "a directory of the build machine"),
		path("RUNPATH into site-packages of the build environment", "/opt/venv/lib/python3.11/site-packages/torch/lib", "a directory of the build machine"),
		path("RUNPATH out of site-packages", "$ORIGIN/../../../../build/lib", "which leads out of site-packages"),
		path("RUNPATH to the stubs of the toolkit", "/usr/local/cuda/lib64/stubs", "the toolkit's directory of libraries without code"),
		path("RUNPATH to the directory in which the program starts", "", "relative to the directory in which the program starts"),
		{
			what: "RPATH into the build tree", of: horovodROCm, change: func(s *specimen) { s.library().Rpath = "/tmp/build-env/lib" },
			gate: "elf-needed", says: `looks for libraries in "/tmp/build-env/lib", a directory of the build machine`, do: "read the link lines",
		},
		{
			what: "the driver library is linked", of: horovodCUDA,
			change: func(s *specimen) {
				s.library().Needed = append(s.library().Needed, "libcuda.so.1")
				s.cannotImport("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory")
				s.replace("check-build", "[X] PyTorch", "[ ] PyTorch")
			},
			gate: "elf-needed", says: "needs libcuda.so*, which is forbidden", do: "read the link lines", also: "elf-symbols " + running,
		},
		{
			what: "a second library of the wheel needs the driver library", of: horovodCUDA,
			change: func(s *specimen) {
				s.libraries["horovod/lib/libhelper.so.1"] = &elftest.Library{Needed: []string{"libcuda.so.1"}}
			},
			gate: "elf-needed", says: "horovod/lib/libhelper.so.1 needs libcuda.so*, which is forbidden", do: "read the link lines",
		},
		{
			what: "a link to the CUDA runtime, which must be inside", of: ncclVerbs,
			change: func(s *specimen) {
				s.library().Needed = append(s.library().Needed, "libcudart.so.13")
				s.box.libraries["libcudart.so.13"] = []string{}
			},
			gate: "elf-needed", says: "needs libcudart.so*, which is forbidden", do: "read the link lines",
		},
		{
			what: "an extension for another machine", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Machine = "aarch64"
				s.cannotImport("ImportError: mpi_lib.so: cannot open shared object file: No such file or directory")
			},
			gate: "wheel-format", says: "is for aarch64, and the tag is cp311-cp311-linux_x86_64", do: "build it again", also: "cpu-isa " + running,
		},
		{
			what: "an extension with the content of no library", of: horovodROCm,
			change: func(s *specimen) {
				s.libraries = nil
				s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: s.extension, Text: strings.Repeat("version https://git-lfs\n", 9)})
				s.cannotImport("ImportError: mpi_lib.so: invalid ELF header")
			},
			gate: "elf-needed", blind: true, says: "not an ELF file: wrong magic", do: "not-measured never counts as a pass",
			also: "cpu-isa build-paths device-code elf-symbols " + running,
		},
		{
			what: "a missing symbol, bound at its first call", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Undefined = append(s.library().Undefined, elftest.Named("ncclCommRegister")...)
			},
			gate: "elf-symbols", says: "requires 1 symbols missing from all its libraries: ncclCommRegister", do: "missing from the link line",
		},
		{
			what: "a symbol of a newer release than the run-time image's", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Undefined = append(s.library().Undefined, elftest.From("libamdhip64.so.5", "hip_6.0", "hipMalloc")...)
				s.cannotImport("ImportError: libamdhip64.so.5: version `hip_6.0' not found (required by mpi_lib.so)")
			},
			gate: "elf-symbols", says: "hipMalloc@hip_6.0", do: "the run-time image has an older one", also: running,
		},
		{
			what: "a library missing in the run-time image", of: horovodROCm,
			change: func(s *specimen) {
				delete(s.box.libraries, "librccl.so.1")
				s.cannotImport("ImportError: librccl.so.1: cannot open shared object file: No such file or directory")
			},
			gate: "elf-symbols", says: "needs librccl.so.1, which cannot be loaded", do: "add its package to the packages of that image", also: running,
		},
		{
			what: "an extension without its dynamic symbols", of: horovodROCm,
			change: func(s *specimen) {
				s.library().Undefined, s.library().Exported = nil, nil
				s.cannotImport("ImportError: dynamic module does not define module export function")
			},
			gate: "elf-symbols", blind: true, says: "it neither requires nor exports a symbol", do: "not-measured never counts as a pass", also: "cpu-isa " + running,
		},
	}
}
