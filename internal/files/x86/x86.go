// Package x86 decodes 64-bit x86 machine code to find the end of each instruction and
// the processor extension it requires.
//
// It is a length decoder, not a disassembler: its tables give the operand layout and
// the extension of an opcode, but no names. The tables follow the opcode maps of
// Intel's Software Developer's Manual, volume 2, appendix A, and chapters 2.3 (VEX) and
// 2.7 (EVEX).
package x86

// Feature is a processor extension, named as in GCC's -m options. "" is the baseline of
// every 64-bit processor. All of AVX-512 is one feature.
type Feature string

// The extensions distinguished by [Decode].
const (
	SSE3     Feature = "sse3"
	SSSE3    Feature = "ssse3"
	SSE41    Feature = "sse4.1"
	SSE42    Feature = "sse4.2"
	POPCNT   Feature = "popcnt"
	CX16     Feature = "cx16"
	AES      Feature = "aes"
	PCLMUL   Feature = "pclmul"
	SHA      Feature = "sha"
	GFNI     Feature = "gfni"
	MOVBE    Feature = "movbe"
	ADX      Feature = "adx"
	LZCNT    Feature = "lzcnt"
	BMI1     Feature = "bmi"
	BMI2     Feature = "bmi2"
	AVX      Feature = "avx"
	AVX2     Feature = "avx2"
	F16C     Feature = "f16c"
	FMA      Feature = "fma"
	AVXVNNI  Feature = "avxvnni"
	AVX512   Feature = "avx512"
	XOP      Feature = "xop" // also FMA4; only AMD's Bulldozer has them
	AVXOther Feature = "avx-other"
)

// Features lists every feature.
func Features() []Feature {
	return []Feature{
		SSE3, SSSE3, SSE41, SSE42, POPCNT, CX16, AES, PCLMUL, SHA, GFNI, MOVBE, ADX, LZCNT, BMI1, BMI2,
		AVX, AVX2, F16C, FMA, AVXVNNI, AVX512, XOP, AVXOther,
	}
}

// levels names sets of features (x86-64 psABI, "Micro-Architecture Levels"). Each level
// contains the preceding ones.
var levels = []struct {
	name string
	adds []Feature
}{
	{"x86-64", nil},
	{"x86-64-v2", []Feature{SSE3, SSSE3, SSE41, SSE42, POPCNT, CX16}},
	{"x86-64-v3", []Feature{AVX, AVX2, BMI1, BMI2, F16C, FMA, LZCNT, MOVBE}},
	{"x86-64-v4", []Feature{AVX512}},
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

// Names returns the names of all levels, and then of all features.
func Names() []string {
	var all []string
	for _, l := range levels {
		all = append(all, l.name)
	}
	for _, f := range Features() {
		all = append(all, string(f))
	}
	return all
}
