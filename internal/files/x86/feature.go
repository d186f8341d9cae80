package x86

// The functions of this file return the extension that an opcode needs, by its map and its
// prefixes.

// map0F returns the extension of an opcode after 0F. The decoder has not yet read
// the ModRM byte. TZCNT is left out: GCC writes it for BSF, and processors without
// TZCNT execute it as BSF.
func (d *decoder) map0F(op byte) Feature {
	switch {
	case op == 0xb8 && d.repeat == 0xf3:
		return POPCNT
	case op == 0xbd && d.repeat == 0xf3:
		return LZCNT
	case (op == 0x7c || op == 0x7d || op == 0xd0) && (d.size || d.repeat == 0xf2):
		return SSE3
	case op == 0xf0 && d.repeat == 0xf2:
		return SSE3
	case op == 0x12 && d.repeat != 0, op == 0x16 && d.repeat == 0xf3:
		return SSE3
	case op == 0xc7 && d.wide && !d.register() && d.peek()>>3&7 == 1:
		return CX16
	}
	return ""
}

// map38 returns the extension of an opcode after 0F 38 (table A-4).
func (d *decoder) map38(op byte) Feature {
	switch {
	case op <= 0x0b, op >= 0x1c && op <= 0x1e:
		return SSSE3
	case op == 0x37:
		return SSE42
	case op >= 0x10 && op <= 0x41:
		return SSE41
	case op == 0xcf:
		return GFNI
	case op >= 0xc8 && op <= 0xcd:
		return SHA
	case op >= 0xdb && op <= 0xdf:
		return AES
	case op == 0xf6 && (d.size || d.repeat == 0xf3):
		return ADX
	case (op == 0xf0 || op == 0xf1) && d.repeat == 0xf2:
		return SSE42
	case op == 0xf0, op == 0xf1:
		return MOVBE
	}
	return ""
}

// map3A returns the extension of an opcode after 0F 3A (table A-5).
func map3A(op byte) Feature {
	switch {
	case op == 0x0f:
		return SSSE3
	case op == 0x44:
		return PCLMUL
	case op >= 0x08 && op <= 0x42:
		return SSE41
	case op >= 0x60 && op <= 0x63:
		return SSE42
	case op == 0xcc:
		return SHA
	case op == 0xce, op == 0xcf:
		return GFNI
	case op == 0xdf:
		return AES
	}
	return ""
}

// vexFeature returns the extension of an instruction with a VEX prefix, which states
// whether it is long, with 256 bits.
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
