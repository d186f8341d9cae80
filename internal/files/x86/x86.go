// Package x86 decodes 64-bit x86 machine code to find the end of each instruction and
// the processor extension it requires.
//
// It is a length decoder, not a disassembler: its tables give the operand layout and
// the extension of an opcode, but no names. The tables follow the opcode maps of
// Intel's Software Developer's Manual, volume 2, appendix A, and chapters 2.3 (VEX) and
// 2.7 (EVEX).
package x86

// Feature is a processor extension, named as in GCC's -m options. "" is the baseline of
// every 64-bit processor. All of AVX-512 is one feature, and so are XOP and FMA4, which
// only AMD's Bulldozer has.
type Feature string

// levels names sets of features (x86-64 psABI, "Micro-Architecture Levels"). Each level
// contains the preceding ones.
var levels = []struct {
	name string
	adds []Feature
}{
	{"x86-64", nil},
	{"x86-64-v2", []Feature{"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"}},
	{"x86-64-v3", []Feature{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}},
	{"x86-64-v4", []Feature{"avx512"}},
}

// Level returns the features of a level, and reports whether the level exists.
func Level(name string) ([]Feature, bool) {
	var all []Feature
	for _, l := range levels {
		all = append(all, l.adds...)
		if l.name == name {
			return all, true
		}
	}
	return nil, false
}

// Features lists every feature: those of the levels, and the others.
func Features() []Feature {
	all, _ := Level("x86-64-v4")
	return append(all, "aes", "pclmul", "sha", "gfni", "adx", "avxvnni", "xop", "avx-other")
}

// Names returns the names of all levels, and then of all features.
func Names() []string {
	var names []string
	for _, l := range levels {
		names = append(names, l.name)
	}
	for _, f := range Features() {
		names = append(names, string(f))
	}
	return names
}
