// Package x86 decodes 64-bit x86 machine code to find the end of each instruction and
// the processor extension it requires.
//
// It is a length decoder, not a disassembler: its tables give the operand layout and
// the extension of an opcode, but no names. The tables follow the opcode maps of
// Intel's Software Developer's Manual, volume 2, appendix A, and chapters 2.3 (VEX) and
// 2.7 (EVEX).
package x86

import "strings"

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

// opcodeMap is a table of opcodes, by the bytes before the opcode.
type opcodeMap int

const (
	map0F opcodeMap = iota // 0F
	map38                  // 0F 38
	map3A                  // 0F 3A
	vex0F                  // VEX with these three
	vex38
	vex3A
)

// A rule gives the extension of ranges of opcodes, each the first and the last. when has a
// letter for each condition, one of which must hold:
//
//	6  the prefix 66
//	2  the prefix F2
//	3  the prefix F3
//	S  VEX for 128 bits
//	L  VEX for 256 bits
//	0  VEX without a prefix
//	R  the operand is a register
//	W  the compare and exchange of 16 bytes
type rule struct {
	opcodes []byte
	when    string
	needs   Feature
}

// rules are the extensions by map (tables ). The first fitting rule counts. An
// opcode without a rule is in the baseline.
//
// TZCNT has no rule: GCC writes it for BSF, and processors without TZCNT execute it as
// BSF. Moves, floats and 128-bit integers are AVX, 256-bit integers are AVX2. VEX
// instructions on mask registers belong to AVX-512.
var rules = [...][]rule{
	map0F: {
		{[]byte{0xb8, 0xb8}, "3", "popcnt"},
		{[]byte{0xbd, 0xbd}, "3", "lzcnt"},
		{[]byte{0x7c, 0x7d, 0xd0, 0xd0}, "62", "sse3"},
		{[]byte{0xf0, 0xf0}, "2", "sse3"},
		{[]byte{0x12, 0x12}, "23", "sse3"},
		{[]byte{0x16, 0x16}, "3", "sse3"},
		{[]byte{0xc7, 0xc7}, "W", "cx16"},
	},
	map38: {
		{[]byte{0x00, 0x0b, 0x1c, 0x1e}, "", "ssse3"},
		{[]byte{0x37, 0x37}, "", "sse4.2"},
		{[]byte{0x10, 0x41}, "", "sse4.1"},
		{[]byte{0xcf, 0xcf}, "", "gfni"},
		{[]byte{0xc8, 0xcd}, "", "sha"},
		{[]byte{0xdb, 0xdf}, "", "aes"},
		{[]byte{0xf6, 0xf6}, "63", "adx"},
		{[]byte{0xf0, 0xf1}, "2", "sse4.2"},
		{[]byte{0xf0, 0xf1}, "", "movbe"},
	},
	map3A: {
		{[]byte{0x0f, 0x0f}, "", "ssse3"},
		{[]byte{0x08, 0x42}, "", "sse4.1"},
		{[]byte{0x44, 0x44}, "", "pclmul"},
		{[]byte{0x60, 0x63}, "", "sse4.2"},
		{[]byte{0xcc, 0xcc}, "", "sha"},
		{[]byte{0xce, 0xcf}, "", "gfni"},
		{[]byte{0xdf, 0xdf}, "", "aes"},
	},
	vex0F: {
		{[]byte{0x41, 0x4b, 0x90, 0x93, 0x98, 0x99}, "", "avx512"},
		{[]byte{0x00, 0xff}, "S", "avx"},
		{[]byte{0x6e, 0x6f, 0x7e, 0x7f, 0xd0, 0xd0, 0xd6, 0xd6, 0xe6, 0xe7, 0xf0, 0xf0}, "", "avx"},
		{[]byte{0x60, 0x76, 0xd1, 0xff}, "", "avx2"},
		{[]byte{0x00, 0xff}, "", "avx"},
	},
	vex38: {
		{[]byte{0x13, 0x13}, "", "f16c"},
		{[]byte{0x96, 0x9f, 0xa6, 0xaf, 0xb6, 0xbf}, "", "fma"},
		{[]byte{0xf2, 0xf3}, "", "bmi"},
		{[]byte{0xf7, 0xf7}, "0", "bmi"},
		{[]byte{0xf5, 0xf7}, "", "bmi2"},
		{[]byte{0xdb, 0xdf}, "S", "aes"}, // for 256 bits it is VAES
		{[]byte{0xcf, 0xcf}, "", "gfni"},
		{[]byte{0x50, 0x53}, "", "avxvnni"},
		{[]byte{0x18, 0x19}, "R", "avx2"}, // the broadcast from a register
		{[]byte{0x0c, 0x0f, 0x17, 0x1a, 0x2c, 0x2f}, "", "avx"},
		{[]byte{0x16, 0x16, 0x36, 0x36, 0x45, 0x47, 0x58, 0x5a, 0x78, 0x79, 0x8c, 0x8c, 0x8e, 0x8e, 0x90, 0x93}, "", "avx2"},
		{[]byte{0x42, 0xff}, "", "avx-other"},
		{[]byte{0x00, 0xff}, "L", "avx2"},
		{[]byte{0x00, 0xff}, "", "avx"},
	},
	vex3A: {
		{[]byte{0x1d, 0x1d}, "", "f16c"},
		{[]byte{0xf0, 0xf0}, "", "bmi2"},
		{[]byte{0x30, 0x33}, "", "avx512"},
		{[]byte{0x00, 0x02, 0x38, 0x39, 0x46, 0x46}, "", "avx2"},
		{[]byte{0x0e, 0x0f, 0x42, 0x42, 0x4c, 0x4c}, "L", "avx2"},
		{[]byte{0x44, 0x44}, "S", "pclmul"},
		{[]byte{0xdf, 0xdf}, "", "aes"},
		{[]byte{0xce, 0xcf}, "", "gfni"},
		{[]byte{0x48, 0x49, 0x5c, 0x5f, 0x68, 0x6f, 0x78, 0x7f}, "", "xop"},
		{[]byte{0x44, 0x44, 0x64, 0xff}, "", "avx-other"},
		{[]byte{0x00, 0xff}, "", "avx"},
	},
}

// feature returns the extension of an opcode. The decoder has not yet read the ModRM byte.
func (d *decoder) feature(m opcodeMap, op byte) Feature {
	for _, r := range rules[m] {
		for i := 0; i < len(r.opcodes); i += 2 {
			if r.opcodes[i] <= op && op <= r.opcodes[i+1] && (r.when == "" || strings.ContainsFunc(r.when, d.holds)) {
				return r.needs
			}
		}
	}
	return ""
}

func (d *decoder) holds(condition rune) bool {
	modRM := d.peek()
	isRegister := modRM>>6 == 3
	switch condition {
	case '6':
		return d.size
	case '2':
		return d.repeat == 0xf2
	case '3':
		return d.repeat == 0xf3
	case 'S':
		return !d.long
	case 'L':
		return d.long
	case '0':
		return !d.prefixed
	case 'R':
		return isRegister
	case 'W':
		return d.wide && !isRegister && modRM>>3&7 == 1
	}
	return false
}
