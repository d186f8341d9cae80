package gate

import (
	"slices"

	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// badCode lists wheels with code for other processors than promised, or of another
// size.
func badCode() []bad {
	add := func(s *specimen, name string, code []byte) {
		s.library().Exported = append(slices.Clone(s.library().Exported), elftest.Symbol{Name: name, Code: code})
	}
	return []bad{
		refused("code of -march=native on a machine with AVX-512", horovodROCm, func(s *specimen) { add(s, "horovod_run", avx512) },
			"cpu-isa", "uses avx512 in horovod_run (0x", "HOROVOD_BUILD_ARCH_FLAGS"),
		refused("code for AVX in a library promised for every processor", ncclVerbs, func(s *specimen) {
			add(s, "a", avx)
			add(s, "b", avx)
			add(s, "c", avx)
			add(s, "d", avx)
			add(s, "e", avx)
		}, "cpu-isa", "and 2 more functions; expected x86-64", "-march=native"),
		refused("code for AVX2 in a function without a check of the processor", horovodROCm, func(s *specimen) { add(s, "horovod_sum", avx2) },
			"cpu-isa", "uses avx2 in horovod_sum (0x", "SIGILL"),
		refused("a note of the linker for which the loader refuses older processors", horovodROCm, func(s *specimen) { s.library().Level = 3 },
			"cpu-isa", "uses avx2 in the loader, which demands x86-64-v3 (0x", "-march=native"),
		refused("bytes in place of code", ncclVerbs, func(s *specimen) { add(s, "data", []byte{0x06, 0x06}) },
			"cpu-isa", "not an instruction of 64-bit x86", "run the gate again").unmeasured(),
		refused("debug information of a build in a home directory", horovodROCm,
			func(s *specimen) { s.debug("/home/jane/horovod/build/temp.linux-x86_64-cpython-311") },
			"build-paths", "holds /home/jane/horovod/build/temp.linux-x86_64-cpython-311", "-ffile-prefix-map"),
		refused("debug information of hipcc in the code for GPUs", horovodROCm, func(s *specimen) {
			s.library().Sections = []elftest.Section{bundled(append(codeObject(memcpyKernel), "/home/jane/horovod/hip_kernels.cpp\x00"...))}
		}, "build-paths", "holds /home/jane/horovod/hip_kernels.cpp", "-ffile-prefix-map"),
		refused("the name of a compiler's temporary file", ncclVerbs, func(s *specimen) { s.debug("/tmp/icpx-364ca0d988") },
			"build-paths", "holds /tmp/icpx-364ca0d988", "other bytes elsewhere"),
		refused("a path of a build service's machine", horovodROCm,
			func(s *specimen) { s.debug("-I/usr/include -I /__w/horovod/horovod/third_party") },
			"build-paths", "holds /__w/horovod/horovod/third_party", "builder run"),
		refused("a wheel of a third of its usual size", horovodROCm, func(s *specimen) { s.resize(20e3) },
			"size", " KB, expected 40KB..150KB", "lost code, such as that for GPUs"),
		refused("a wheel with other projects' libraries inside", horovodROCm, func(s *specimen) { s.resize(300e3) },
			"size", " KB, expected 40KB..150KB", "libraries of others"),
	}
}

// debug adds a section of debug information.
func (s *specimen) debug(text string) {
	l := s.library()
	l.Sections = append(slices.Clone(l.Sections), elftest.Section{Name: ".debug_line_str", Data: []byte(text + "\x00")})
}

func (s *specimen) resize(size int) {
	i := slices.IndexFunc(s.wheel.Files, func(f wheeltest.File) bool { return f.Name == ballast })
	s.wheel.Files[i].Text = noise(size)
}
