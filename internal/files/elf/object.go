package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// cudaEntry is STO_CUDA_ENTRY. It marks a kernel in the st_other field of a cubin's
// symbol.
const cudaEntry = 0x10

// Each AMD kernel has a descriptor: an object of 64 bytes, named like the kernel with
// this suffix (llvm/docs/AMDGPUUsage.rst, code object V3 and later).
const (
	descriptorSuffix = ".kd"
	descriptorSize   = 64
)

// objectFunctions calls found for each function defined in a code object. For AMD
// kernels it calls found more than once. The names are valid only during the call.
func objectFunctions(m *meter, code []byte, machine elf.Machine, found func(name string, kernel bool) error) error {
	// The limit follows from the size of the code. Otherwise a few bytes could allocate
	// the largest section table.
	sections := min(len(code)/binary.Size(elf.Section64{}), int(elf.SHN_LORESERVE)-1)
	of := m.over(bytes.NewReader(code))
	h, err := readHeader(of)
	if err != nil {
		return err
	}
	img, err := openSections(of, h, uint16(sections))
	if err != nil {
		return err
	}
	if img.machine != machine {
		return fmt.Errorf("it is code for %v, not for %v", img.machine, machine)
	}
	left := len(code) // bytes of names; names longer than the file overlap
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		s := img.byType(kind)
		if s == nil {
			continue
		}
		if err := tableFunctions(img, s, &left, found); err != nil {
			return fmt.Errorf("reading %v: %w", kind, err)
		}
	}
	return nil
}

func tableFunctions(img *image, s *section, left *int, found func(string, bool) error) error {
	table, err := img.data(s, maxSymbols)
	if err != nil {
		return err
	}
	names, err := img.linked(s)
	if err != nil {
		return err
	}
	for ; len(table) >= elf.Sym64Size; table = table[elf.Sym64Size:] {
		role := roleOf(table, img.machine)
		if role == noFunction {
			continue
		}
		name, err := img.r.name(names, uint64(binary.LittleEndian.Uint32(table)))
		if err != nil {
			return err
		}
		if *left -= len(name); *left < 0 {
			return errors.New("the names of its symbols overlap")
		}
		ok := true
		if role == descriptor {
			name, ok = strings.CutSuffix(name, descriptorSuffix)
		}
		if !ok || name == "" {
			continue
		}
		if err := found(name, role != function); err != nil {
			return err
		}
	}
	return nil
}

// role is the meaning of a symbol for a function.
type role int

const (
	noFunction role = iota
	function
	kernel
	descriptor // candidate; the name decides
)

func roleOf(symbol []byte, machine elf.Machine) role {
	kind, other := elf.ST_TYPE(symbol[4]), symbol[5]
	index, size := binary.LittleEndian.Uint16(symbol[6:]), binary.LittleEndian.Uint64(symbol[16:])
	switch {
	case elf.SectionIndex(index) == elf.SHN_UNDEF:
		return noFunction
	case kind == elf.STT_FUNC && machine == elf.EM_CUDA && other&cudaEntry != 0:
		return kernel
	case kind == elf.STT_FUNC:
		return function
	case kind == elf.STT_OBJECT && machine == elf.EM_AMDGPU && size == descriptorSize:
		return descriptor
	}
	return noFunction
}
