package elf

import (
	"debug/elf"
	"encoding/binary"
	"io"
)

// Header is what the first bytes of an ELF file say, of whatever machine.
type Header struct {
	Machine string // as [File] has it; cuda and amdgpu are code of GPUs
	System  string // ELFOSABI_FREEBSD, "" for what Linux loads
}

// ReadHeader reads the first bytes of a file. It reports whether it is an ELF file.
func ReadHeader(r io.ReaderAt) (Header, bool) {
	b := make([]byte, 20)
	if n, _ := r.ReadAt(b, 0); n < len(b) || string(b[:4]) != elf.ELFMAG { // a shorter file is none
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
