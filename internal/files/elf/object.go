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
// kernels it calls found more than once, and only once with the bytes of code. It makes
// e_version the only one that debug/elf reads: a cubin has the number of its CUDA there,
// 124 for 12.4.
func objectFunctions(code []byte, o object, found func(name string, kernel bool, use Use)) error {
	const version = 20 // its position
	if o.machine == elf.EM_CUDA && len(code) >= version+4 {
		binary.LittleEndian.PutUint32(code[version:], uint32(elf.EV_CURRENT))
	}
	f, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return fmt.Errorf("it is no ELF file: %w", err)
	}
	if f.Machine != o.machine {
		return fmt.Errorf("it is code for %v, not for %v", f.Machine, o.machine)
	}
	if err := sameTarget(code, o.target); err != nil {
		return err
	}
	uses, err := kernelUses(f)
	if err != nil {
		return err
	}
	for _, list := range []func() ([]elf.Symbol, error){f.Symbols, f.DynamicSymbols} {
		symbols, err := list()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return fmt.Errorf("its symbols: %w", err)
		}
		for _, s := range symbols {
			name, role := roleOf(s, o.machine)
			if role == noFunction || name == "" {
				continue
			}
			use := uses[name]
			if role == function {
				use.Code = s.Size
			}
			found(name, role == kernel, use)
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

// role is the meaning of a symbol for a function.
type role int

const (
	noFunction role = iota
	function
	kernel
)

// roleOf returns the name of the function that a symbol stands for.
func roleOf(s elf.Symbol, machine elf.Machine) (string, role) {
	kind := elf.ST_TYPE(s.Info)
	switch name, isKernel := strings.CutSuffix(s.Name, descriptorSuffix); {
	case s.Section == elf.SHN_UNDEF:
		return "", noFunction
	case kind == elf.STT_FUNC && machine == elf.EM_CUDA && s.Other&cudaEntry != 0:
		return s.Name, kernel
	case kind == elf.STT_FUNC:
		return s.Name, function
	case kind == elf.STT_OBJECT && machine == elf.EM_AMDGPU && s.Size == descriptorSize && isKernel:
		return name, kernel
	}
	return "", noFunction
}
