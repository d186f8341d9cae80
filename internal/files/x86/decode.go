package x86

import "errors"

// MaxLength is the length of the longest instruction, in bytes.
const MaxLength = 15

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
	d := decoder{code: code[:min(len(code), MaxLength)]}
	feature, ok := d.opcode(d.prefixes())
	switch {
	case d.at > len(d.code) && len(d.code) < MaxLength:
		return Instruction{}, ErrShort
	case d.at > len(d.code), !ok:
		return Instruction{}, ErrInvalid
	}
	return Instruction{d.at, feature}, nil
}

// decoder is the state of one instruction. It reads zeros after the end of the code.
type decoder struct {
	code []byte
	at   int

	size   bool // prefix 66: 16-bit operands
	addr   bool // prefix 67: 32-bit addresses
	repeat byte // prefix F2 or F3
	wide   bool // REX.W

	long     bool // VEX for 256 bits
	prefixed bool // VEX with one of the prefixes
}

func (d *decoder) next() byte {
	d.at++
	if d.at > len(d.code) {
		return 0
	}
	return d.code[d.at-1]
}

func (d *decoder) peek() byte {
	b := d.next()
	d.at--
	return b
}

// prefixes reads the prefixes and returns the opcode. Only the last REX prefix counts,
// and only directly before the opcode.
func (d *decoder) prefixes() byte {
	for {
		switch op := d.next(); {
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
	return "", d.operands(oneByte[op])
}

// escape reads an opcode after 0F.
func (d *decoder) escape() (Feature, bool) {
	switch op := d.next(); op {
	case 0x38:
		op = d.next()
		return d.feature(map38, op), d.operands('m')
	case 0x3a:
		op = d.next()
		return d.feature(map3A, op), d.operands('B')
	default:
		return d.feature(map0F, op), d.operands(twoByte[op])
	}
}

// Letters for the bytes after an opcode:
//
//   - none
//     .  no instruction of 64-bit code
//     m  ModRM, with SIB and displacement
//     b  an operand of 1 byte; B with ModRM before it; 3 only for TEST
//     w  an operand of 2 bytes, e of 3 (ENTER), r of 4
//     z  an operand of 2 or 4 bytes, by the prefix 66; Z with ModRM before it; 4 only for TEST
//     v  an operand as wide as the register (MOV)
//     o  an address
//
// A row is that of appendix A, with 16 opcodes. The decoder handles prefixes and escapes
// before it looks here.
const (
	// table A-2
	oneByte = "mmmmbz..mmmmbz.-" + // 00
		"mmmmbz..mmmmbz.." + // 10
		"mmmmbz-.mmmmbz-." + // 20
		"mmmmbz-.mmmmbz-." + // 30
		"----------------" + // 40
		"----------------" + // 50
		"...m----zZbB----" + // 60
		"bbbbbbbbbbbbbbbb" + // 70
		"BZ.Bmmmmmmmmmmmm" + // 80
		"----------.-----" + // 90
		"oooo----bz------" + // a0
		"bbbbbbbbvvvvvvvv" + // b0
		"BBw---BZe-w--b.-" + // c0
		"mmmm...-mmmmmmmm" + // d0
		"bbbbbbbbrr.b----" + // e0
		"------34------mm" // f0

	// table A-3: after 0F. 3DNow! (0F 0F) ends with its opcode.
	twoByte = "mmmm.-----.-.m-B" + // 00
		"mmmmmmmmmmmmmmmm" + // 10
		"mmmm....mmmmmmmm" + // 20
		"------.--.-....." + // 30
		"mmmmmmmmmmmmmmmm" + // 40
		"mmmmmmmmmmmmmmmm" + // 50
		"mmmmmmmmmmmmmmmm" + // 60
		"BBBBmmm-mmmmmmmm" + // 70
		"rrrrrrrrrrrrrrrr" + // 80
		"mmmmmmmmmmmmmmmm" + // 90
		"---mBmmm---mBmmm" + // a0
		"mmmmmmmmmmBmmmmm" + // b0
		"mmBmBBBm--------" + // c0
		"mmmmmmmmmmmmmmmm" + // d0
		"mmmmmmmmmmmmmmmm" + // e0
		"mmmmmmmmmmmmmmmm" // f0
)

// operands skips the bytes after an opcode. It returns false for no instruction.
func (d *decoder) operands(letter byte) bool {
	z := 4 // bytes of a 16- or 32-bit operand
	if d.size && !d.wide {
		z = 2
	}
	switch letter {
	case '.':
		return false
	case 'm':
		d.modRM()
	case 'b':
		d.at++
	case 'B':
		d.modRM()
		d.at++
	case '3', '4': // groups F6 and F7, in which only TEST has an operand
		if d.modRM() <= 1 {
			d.operands(map[byte]byte{'3': 'b', '4': 'z'}[letter])
		}
	case 'w':
		d.at += 2
	case 'e':
		d.at += 3
	case 'r': // Intel's processors ignore the prefix 66 here
		d.at += 4
	case 'z':
		d.at += z
	case 'Z':
		d.modRM()
		d.at += z
	case 'v':
		if d.wide {
			z = 8
		}
		d.at += z
	case 'o':
		d.at += 8
		if d.addr {
			d.at -= 4
		}
	}
	return true
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
		d.at++
	case mod == 2, base == 5 && mod == 0: // base 5 is no base with SIB, and RIP-relative without
		d.at += 4
	}
	return b >> 3 & 7
}

// vex reads an instruction with a VEX prefix. In 64-bit code C4 and C5 are always VEX
// prefixes, because LES and LDS do not exist.
func (d *decoder) vex(first byte) (Feature, bool) {
	opcodes, b := byte(1), d.next()
	if first == 0xc4 {
		opcodes, b = b&0x1f, d.next()
	}
	d.long, d.prefixed = b&4 != 0, b&3 != 0
	op := d.next()
	feature := Feature("avx-other")
	if opcodes >= 1 && opcodes <= 3 {
		feature = d.feature(vex0F+opcodeMap(opcodes-1), op)
	}
	return feature, d.vectorOperands(opcodes, op)
}

// evex reads an instruction with an EVEX prefix. In 64-bit code 62 always begins one,
// because BOUND does not exist.
func (d *decoder) evex() (Feature, bool) {
	opcodes := d.next() & 7
	d.at += 2
	return "avx512", d.vectorOperands(opcodes, d.next())
}

// vectorOperands skips the bytes after the opcode of a VEX or EVEX instruction.
func (d *decoder) vectorOperands(opcodes, op byte) bool {
	switch opcodes {
	case 1:
		if op == 0x77 { // VZEROUPPER and VZEROALL
			return true
		}
		if op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6 {
			return d.operands('B')
		}
		return d.operands('m')
	case 2, 5, 6:
		return d.operands('m')
	case 3:
		return d.operands('B')
	case 7: // immediate forms of WRMSRNS and similar instructions
		d.modRM()
		return d.operands('r')
	}
	return false
}

// xop reads an instruction of AMD's XOP extension. It begins with 8F like POP, but has
// another ModRM byte.
func (d *decoder) xop() (Feature, bool) {
	opcodes := d.next() & 0x1f
	d.at += 2
	d.modRM()
	switch opcodes {
	case 8:
		return "xop", d.operands('b')
	case 9:
		return "xop", true
	case 10:
		return "xop", d.operands('r')
	}
	return "", false
}
