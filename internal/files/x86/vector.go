package x86

// vex reads an instruction with a VEX prefix. In 64-bit code C4 and C5 are always VEX
// prefixes, because LES and LDS do not exist.
func (d *decoder) vex(first byte) (Feature, bool) {
	opcodes, b := byte(1), d.next()
	if first == 0xc4 {
		opcodes, b = b&0x1f, d.next()
	}
	long, pp := b&4 != 0, b&3
	op := d.next()
	feature := d.vexFeature(opcodes, op, long, pp)
	if !d.vectorOperands(opcodes, op) {
		return "", false
	}
	return feature, true
}

// vectorOperands skips the bytes after the opcode of a VEX or EVEX instruction.
func (d *decoder) vectorOperands(opcodes, op byte) bool {
	switch opcodes {
	case 1:
		if op == 0x77 { // VZEROUPPER and VZEROALL
			return true
		}
		d.modRM()
		if op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6 {
			d.skip(1)
		}
	case 2, 5, 6:
		d.modRM()
	case 3:
		d.modRM()
		d.skip(1)
	case 7: // immediate forms of WRMSRNS and similar instructions
		d.modRM()
		d.skip(4)
	default:
		return false
	}
	return true
}

func (d *decoder) vexFeature(opcodes, op byte, long bool, pp byte) Feature {
	switch opcodes {
	case 1:
		return vex0F(op, long)
	case 2:
		return d.vex38(op, long, pp)
	case 3:
		return vex3A(op, long)
	}
	return AVXOther
}

// vex0F returns the extension of a VEX opcode of map 0F. Moves, floats and 128-bit
// integers are AVX, 256-bit integers are AVX2. Instructions on mask registers belong to
// AVX-512.
func vex0F(op byte, long bool) Feature {
	switch {
	case op >= 0x41 && op <= 0x4b, op >= 0x90 && op <= 0x93, op == 0x98, op == 0x99:
		return AVX512
	case !long:
		return AVX
	case op == 0x6e, op == 0x6f, op == 0x7e, op == 0x7f, op == 0x77, op == 0xd6, op == 0xe7, op == 0xf0, op == 0xe6, op == 0xd0:
		return AVX
	case op >= 0x60 && op <= 0x76, op >= 0xd1:
		return AVX2
	}
	return AVX
}

func (d *decoder) vex38(op byte, long bool, pp byte) Feature {
	switch {
	case op == 0x13:
		return F16C
	case op >= 0x96 && op <= 0x9f, op >= 0xa6 && op <= 0xaf, op >= 0xb6 && op <= 0xbf:
		return FMA
	case op == 0xf2, op == 0xf3, op == 0xf7 && pp == 0:
		return BMI1
	case op >= 0xf5 && op <= 0xf7:
		return BMI2
	case op >= 0xdb && op <= 0xdf:
		if long {
			return AVXOther // VAES
		}
		return AES
	case op == 0xcf:
		return GFNI
	case op >= 0x50 && op <= 0x53:
		return AVXVNNI
	case op == 0x18 || op == 0x19: // AVX2 added the broadcast from a register
		if d.register() {
			return AVX2
		}
		return AVX
	case op >= 0x0c && op <= 0x0f, op == 0x17, op == 0x1a, op >= 0x2c && op <= 0x2f:
		return AVX
	case op == 0x16, op == 0x36, op >= 0x45 && op <= 0x47, op >= 0x58 && op <= 0x5a, op == 0x78, op == 0x79,
		op == 0x8c, op == 0x8e, op >= 0x90 && op <= 0x93:
		return AVX2
	case op > 0x41:
		return AVXOther
	case long:
		return AVX2
	}
	return AVX
}

func vex3A(op byte, long bool) Feature {
	switch {
	case op == 0x1d:
		return F16C
	case op == 0xf0:
		return BMI2
	case op >= 0x30 && op <= 0x33:
		return AVX512
	case op == 0x00, op == 0x01, op == 0x02, op == 0x38, op == 0x39, op == 0x46:
		return AVX2
	case long && (op == 0x0e || op == 0x0f || op == 0x42 || op == 0x4c):
		return AVX2
	case op == 0x44 && !long:
		return PCLMUL
	case op == 0xdf:
		return AES
	case op == 0xce, op == 0xcf:
		return GFNI
	case op >= 0x5c && op <= 0x5f, op >= 0x68 && op <= 0x6f, op >= 0x78 && op <= 0x7f, op == 0x48, op == 0x49:
		return XOP
	case op > 0x63, op == 0x44:
		return AVXOther
	}
	return AVX
}

// evex reads an instruction with an EVEX prefix. In 64-bit code 62 always begins one,
// because BOUND does not exist.
func (d *decoder) evex() (Feature, bool) {
	opcodes := d.next() & 7
	d.skip(2)
	op := d.next()
	return AVX512, d.vectorOperands(opcodes, op)
}

// xop reads an instruction of AMD's XOP extension. It begins with 8F like POP, but has
// another ModRM byte.
func (d *decoder) xop() (Feature, bool) {
	opcodes := d.next() & 0x1f
	d.skip(1)
	d.next()
	d.modRM()
	switch opcodes {
	case 8:
		d.skip(1)
	case 9:
	case 10:
		d.skip(4)
	default:
		return "", false
	}
	return XOP, true
}
