package elf

import (
	"debug/elf"
	"encoding/binary"
	"io"
)

// Header holds the first fields of an ELF file, for any machine.
type Header struct {
	Machine string // as in platform tags: x86_64, aarch64; also cuda and amdgpu for GPU code
	System  string // such as ELFOSABI_FREEBSD; "" for files Linux loads
}

// ReadHeader reads the header of a file. It returns false if r is not an ELF file.
func ReadHeader(r io.ReaderAt) (Header, bool) {
	b := make([]byte, 20)
	if n, _ := r.ReadAt(b, 0); n < len(b) || string(b[:4]) != elf.ELFMAG { // a shorter file is not ELF
		return Header{}, false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(b[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	h := Header{Machine: machineName(elf.Machine(order.Uint16(b[18:])))}
	if abi := elf.OSABI(b[elf.EI_OSABI]); abi != elf.ELFOSABI_NONE && abi != elf.ELFOSABI_LINUX {
		h.System = abi.String()
	}
	return h, true
}
