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
		{
			what: "code of -march=native on a machine with AVX-512", of: horovodROCm,
			change: func(s *specimen) { add(s, "horovod_run", avx512) },
			gate:   "cpu-isa", says: "uses avx512 in horovod_run (0x", do: "HOROVOD_BUILD_ARCH_FLAGS",
		},
		{
			what: "code for AVX in a library promised for every processor", of: ncclVerbs,
			change: func(s *specimen) {
				add(s, "a", avx)
				add(s, "b", avx)
				add(s, "c", avx)
				add(s, "d", avx)
				add(s, "e", avx)
			},
			gate: "cpu-isa", says: "and 2 more functions; expected x86-64", do: "-march=native",
		},
		{
			what: "code for AVX2 in a function without a check of the processor", of: horovodROCm,
			change: func(s *specimen) { add(s, "sum", avx2) },
			gate:   "cpu-isa", says: "uses avx2 in sum (0x", do: "SIGILL",
		},
		{
			what: "bytes in place of code", of: ncclVerbs,
			change: func(s *specimen) { add(s, "data", []byte{0x06, 0x06}) },
			gate:   "cpu-isa", blind: true, says: "not an instruction of 64-bit x86", do: "run the gate again",
		},
		{
			what: "debug information of a build in a home directory", of: horovodROCm,
			change: func(s *specimen) { s.debug("/home/jane/horovod/build/temp.linux-x86_64-cpython-311") },
			gate:   "build-paths", says: "holds /home/jane/horovod/build/temp.linux-x86_64-cpython-311", do: "-ffile-prefix-map",
		},
		{
			what: "the name of a compiler's temporary file", of: ncclVerbs,
			change: func(s *specimen) { s.debug("/tmp/icpx-364ca0d988") },
			gate:   "build-paths", says: "holds /tmp/icpx-364ca0d988", do: "other bytes elsewhere",
		},
		{
			what: "a path of a build service's machine", of: horovodROCm,
			change: func(s *specimen) { s.debug("-I/usr/include -I /__w/horovod/horovod/third_party") },
			gate:   "build-paths", says: "holds /__w/horovod/horovod/third_party", do: "builder run",
		},
		{
			what: "a wheel of a third of its usual size", of: horovodROCm,
			change: func(s *specimen) { s.resize(20e3) },
			gate:   "size", says: "KB, expected 40KB..150KB", do: "lost code, such as that for GPUs",
		},
		{
			what: "a wheel with other projects' libraries inside", of: horovodROCm,
			change: func(s *specimen) { s.resize(300e3) },
			gate:   "size", says: "KB, expected 40KB..150KB", do: "libraries of others",
		},
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
