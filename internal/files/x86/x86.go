// Package x86 decodes 64-bit x86 machine code to find the end of each instruction and
// the processor extension it requires.
//
// It is a length decoder, not a disassembler: its tables give the operand layout and
// the extension of an opcode, but no names. The tables follow the opcode maps of
// Intel's Software Developer's Manual, volume 2, appendix A, and chapters 2.3 (VEX) and
// 2.7 (EVEX).
package x86

import "errors"

// MaxLength is the length of the longest instruction, in bytes.
const MaxLength = 15

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

// Errors returned by [Decode].
var (
	ErrShort   = errors.New("the instruction is truncated")
	ErrInvalid = errors.New("not an instruction of 64-bit x86")
)

// An Instruction has a length in bytes and requires an extension.
type Instruction struct {
	Length  int
	Feature Feature
}

// Decode reads the instruction at the beginning of code.
func Decode(code []byte) (Instruction, error) {
	d := decoder{code: code[:min(len(code), MaxLength)], whole: len(code) >= MaxLength}
	feature, err := d.instruction()
	if err != nil {
		return Instruction{}, err
	}
	return Instruction{d.at, feature}, nil
}

// decoder is the state of one instruction.
type decoder struct {
	code  []byte
	at    int
	whole bool // code holds MaxLength bytes
	short bool // the decoder needed bytes past the end of code

	size   bool // prefix 66: 16-bit operands
	addr   bool // prefix 67: 32-bit addresses
	repeat byte // prefix F2 or F3
	wide   bool // REX.W
}

func (d *decoder) next() byte {
	if d.at >= len(d.code) {
		d.short = true
		return 0
	}
	d.at++
	return d.code[d.at-1]
}

func (d *decoder) peek() byte {
	if d.at >= len(d.code) {
		d.short = true
		return 0
	}
	return d.code[d.at]
}

func (d *decoder) skip(n int) {
	d.at += n
	d.short = d.short || d.at > len(d.code)
}

func (d *decoder) instruction() (Feature, error) {
	op := d.prefixes()
	feature, ok := d.opcode(op)
	switch {
	case d.short && d.whole:
		return "", ErrInvalid // longer than MaxLength
	case d.short:
		return "", ErrShort
	case !ok:
		return "", ErrInvalid
	}
	return feature, nil
}

// prefixes reads the prefixes and returns the opcode. Only the last REX prefix counts,
// and only directly before the opcode.
func (d *decoder) prefixes() (op byte) {
	for !d.short {
		switch op = d.next(); {
		case op == 0x66:
			d.size, d.wide = true, false
		case op == 0x67:
			d.addr, d.wide = true, false
		case op == 0xf2 || op == 0xf3:
			d.repeat, d.wide = op, false
		case op == 0xf0, op == 0x2e, op == 0x36, op == 0x3e, op == 0x26, op == 0x64, op == 0x65:
			d.wide = false
		case op&0xf0 == 0x40:
			d.wide = op&8 != 0
		default:
			return op
		}
	}
	return 0
}

func (d *decoder) opcode(op byte) (Feature, bool) {
	switch op {
	case 0x0f:
		return d.escape()
	case 0xc4, 0xc5:
		return d.vex(op)
	case 0x62:
		return d.evex()
	case 0x8f:
		if d.peek()&0x38 != 0 {
			return d.xop()
		}
	}
	form := oneByte[op]
	if form == invalid {
		return "", false
	}
	d.operands(form)
	return "", true
}

// operands skips the bytes after an opcode of the first two maps.
func (d *decoder) operands(form form) {
	reg := byte(0)
	if form&modrm != 0 {
		reg = d.modRM()
	}
	if form&group3 != 0 && reg > 1 { // in groups F6 and F7, only TEST has an immediate operand
		return
	}
	switch form &^ (modrm | group3) {
	case imm8:
		d.skip(1)
	case imm16:
		d.skip(2)
	case imm24: // ENTER
		d.skip(3)
	case immZ:
		d.skip(d.z())
	case rel32: // Intel's processors ignore an operand-size prefix here
		d.skip(4)
	case immV: // MOV with an immediate as wide as the register
		if d.wide {
			d.skip(8)
		} else {
			d.skip(d.z())
		}
	case moffs:
		if d.addr {
			d.skip(4)
		} else {
			d.skip(8)
		}
	}
}

// z returns the size of a 16- or 32-bit operand, in bytes.
func (d *decoder) z() int {
	if d.size && !d.wide {
		return 2
	}
	return 4
}

// modRM skips the ModRM byte, the SIB byte and the displacement, and returns the reg
// field.
func (d *decoder) modRM() (reg byte) {
	b := d.next()
	mod, rm := b>>6, b&7
	if mod == 3 {
		return b >> 3 & 7
	}
	base := rm
	if rm == 4 {
		base = d.next() & 7
	}
	switch {
	case mod == 1:
		d.skip(1)
	case mod == 2, base == 5 && mod == 0: // base 5 is no base with SIB, and RIP-relative without
		d.skip(4)
	}
	return b >> 3 & 7
}

// register reports whether the next byte is a ModRM byte that names a register.
func (d *decoder) register() bool { return d.peek()>>6 == 3 }
