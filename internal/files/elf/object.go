package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
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
// kernels it calls found more than once, and only once with the bytes of code.
func objectFunctions(code []byte, o object, found func(name string, kernel bool, use Use)) error {
	machine := o.machine
	f, err := elf.NewFile(headed{code, currentHeader(code, machine)})
	if err != nil {
		return fmt.Errorf("it is no ELF file: %w", err)
	}
	if f.Machine != machine {
		return fmt.Errorf("it is code for %v, not for %v", f.Machine, machine)
	}
	if err := sameTarget(code, o.target); err != nil {
		return err
	}
	uses, err := kernelUses(code, f)
	if err != nil {
		return err
	}
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		s := f.SectionByType(kind)
		if s == nil {
			continue
		}
		if int(s.Link) >= len(f.Sections) {
			return fmt.Errorf("its %v has no table of names", kind)
		}
		symbols, err1 := bytesIn(code, s)
		names, err2 := bytesIn(code, f.Sections[s.Link])
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
			name, role := roleOf(symbols, names, machine)
			if role == noFunction || len(name) == 0 {
				continue
			}
			use := uses[string(name)]
			if role == function {
				use.Code = binary.LittleEndian.Uint64(symbols[16:])
			}
			found(string(name), role == kernel, use)
		}
	}
	return nil
}

// amdNumbers are the numbers of targets in the flags of code objects (EF_AMDGPU_MACH,
// llvm/include/llvm/BinaryFormat/ELF.h). AMD's runtime loads an object only on a GPU of its
// number.
var amdNumbers = map[string]byte{
	"gfx906": 0x2f, "gfx908": 0x30, "gfx90a": 0x3f, "gfx942": 0x4c, "gfx950": 0x4f,
	"gfx1030": 0x36, "gfx1100": 0x41, "gfx1101": 0x46, "gfx1200": 0x48, "gfx1201": 0x4e,
}

// sameTarget compares the target of a container's label with the number that the compiler
// wrote into the code. The number of an NVIDIA target is in the first byte of the flags,
// and since CUDA 13 (ABI 8) in the second.
func sameTarget(code []byte, t Target) error {
	const flags = 48 // its position
	is, arch := code[flags], t.Arch
	if t.Vendor == "nvidia" {
		if code[elf.EI_ABIVERSION] >= 8 {
			is = code[flags+1]
		}
		if want := strings.Trim(arch, "sm_af"); want != strconv.Itoa(int(is)) {
			return fmt.Errorf("it is code for sm_%d", is)
		}
		return nil
	}
	other := ""
	for name, number := range amdNumbers {
		if number == is {
			other = name
		}
	}
	if want := amdNumbers[arch]; want != is && want != 0 || other != arch && other != "" {
		return fmt.Errorf("its flags name the target %#x %s", is, other)
	}
	return nil
}

// headed is a code object that is read with another header.
type headed struct{ code, header []byte }

// ReadAt implements [io.ReaderAt].
func (o headed) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(o.code).ReadAt(p, off)
	if off < int64(len(o.header)) {
		copy(p[:n], o.header[off:])
	}
	return n, err
}

// currentHeader returns the first bytes of a code object up to e_version, with the only
// e_version that debug/elf reads. A cubin has the number of its CUDA there: 124 for 12.4.
func currentHeader(code []byte, machine elf.Machine) []byte {
	const at, end = 20, 24 // of e_version, in bytes
	if machine != elf.EM_CUDA || len(code) < end {
		return nil
	}
	return binary.LittleEndian.AppendUint32(bytes.Clone(code[:at]), uint32(elf.EV_CURRENT))
}

// bytesIn returns the bytes of a section without copying them: debug/elf copies, and NCCL
// has objects of 134 MB.
func bytesIn(code []byte, s *elf.Section) ([]byte, error) {
	if size := uint64(len(code)); s.Type == elf.SHT_NOBITS || s.Offset > size || s.FileSize > size-s.Offset {
		return nil, fmt.Errorf("section %q is not inside it", s.Name)
	}
	return code[s.Offset:][:s.FileSize], nil
}

// role is the meaning of a symbol for a function.
type role int

const (
	noFunction role = iota
	function
	kernel
)

// roleOf returns the name of the function that a symbol stands for.
func roleOf(symbol, names []byte, machine elf.Machine) ([]byte, role) {
	kind, other := elf.ST_TYPE(symbol[4]), symbol[5]
	index, size := binary.LittleEndian.Uint16(symbol[6:]), binary.LittleEndian.Uint64(symbol[16:])
	descriptor := kind == elf.STT_OBJECT && machine == elf.EM_AMDGPU && size == descriptorSize
	if elf.SectionIndex(index) == elf.SHN_UNDEF || kind != elf.STT_FUNC && !descriptor {
		return nil, noFunction
	}
	name, _, _ := bytes.Cut(names[min(word(symbol, 0), uint64(len(names))):], []byte{0})
	if descriptor {
		name, isKernel := bytes.CutSuffix(name, []byte(descriptorSuffix))
		if !isKernel {
			return nil, noFunction
		}
		return name, kernel
	}
	if machine == elf.EM_CUDA && other&cudaEntry != 0 {
		return name, kernel
	}
	return name, function
}
