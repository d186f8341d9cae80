package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Function is one function in the device code for one target. The host can start a
// kernel. Kernels call the other functions, often through a table, so a library can
// have all its kernels and still lack the functions they call.
type Function struct {
	Target Target
	Name   string // as mangled by the compiler
	Kernel bool
	Use    Use // of a kernel for an AMD GPU; of other functions only the bytes of code
}

// DeviceFunctions returns the functions defined in a library's device code, sorted by
// target and name, without duplicates. For PTX it returns only the kernels.
//
// NVIDIA's relocatable code counts only for targets without code from the device
// linker. For these targets, the driver would link it. For other targets it does not
// run, and contains functions removed by the linker.
func DeviceFunctions(r io.ReaderAt) ([]Function, error) { return ask[[]Function](r, "functions") }

// deviceFunctions is the work of a child.
func deviceFunctions(r io.ReaderAt) ([]Function, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxObject), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	inv := inventory{unpacker: &unpacker{zstd: d}, linked: map[string]bool{}, found: map[string]map[string]Function{}}
	if err := eachObject(r, inv.look); err != nil {
		return nil, err
	}
	var all []Function
	for _, target := range slices.Sorted(maps.Keys(inv.found)) {
		for _, name := range slices.Sorted(maps.Keys(inv.found[target])) {
			all = append(all, inv.found[target][name])
		}
	}
	return all, nil
}

type inventory struct {
	*unpacker
	linked map[string]bool                // keys of the targets with code from the device linker
	found  map[string]map[string]Function // by the key of the target and by name
}

func (inv *inventory) look(section string, o object) error {
	key := o.target.key()
	linked := inv.linked[key]
	if section == loaded {
		inv.linked[key] = true
	}
	if o.machine != elf.EM_NONE && section == relocatable && linked {
		return nil
	}
	code, err := inv.unpack(o)
	if err != nil {
		return fmt.Errorf("code for %v: %w", o.target, err)
	}
	if inv.found[key] == nil {
		inv.found[key] = map[string]Function{}
	}
	named := inv.found[key]
	add := func(name string, kernel bool, use Use) {
		before := named[name]
		use.Code = max(use.Code, before.Use.Code)
		named[name] = Function{o.target, name, before.Kernel || kernel, use}
	}
	if o.machine == elf.EM_NONE {
		err = ptxKernels(code, add)
	} else {
		err = objectFunctions(code, o, add)
	}
	if err != nil {
		return fmt.Errorf("code for %v: %w", o.target, err)
	}
	return nil
}

// Directives allowed before .entry, and the name after it (PTX ISA 9.0, 4.4 and 10.1).
var (
	beforeEntry = regexp.MustCompile(`^\s*(?:\.(?:visible|weak|extern)\s+)*$`)
	entryName   = regexp.MustCompile(`^\s+([a-zA-Z][\w$]*|[_$%][\w$]+)`)
)

// ptxKernels calls found for each kernel of a PTX module.
func ptxKernels(text []byte, found func(name string, kernel bool, use Use)) error {
	const entry = ".entry"
	if !bytes.Contains(text, []byte(".version")) {
		return errors.New("it is not PTX: it has no version")
	}
	for {
		i := bytes.Index(text, []byte(entry))
		if i < 0 {
			return nil
		}
		line := text[bytes.LastIndexByte(text[:i], '\n')+1 : i]
		text = text[i+len(entry):]
		name := entryName.FindSubmatch(text[:min(len(text), maxName)])
		if name == nil || !beforeEntry.Match(line) {
			continue
		}
		found(string(name[1]), true, Use{})
	}
}

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
