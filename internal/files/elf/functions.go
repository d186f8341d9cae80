package elf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
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
	u, err := newUnpacker()
	if err != nil {
		return nil, err
	}
	defer u.close()
	inv := inventory{unpacker: u, linked: map[string]bool{}, found: map[string]map[string]Function{}}
	if err := eachObject(r, inv.look); err != nil {
		return nil, err
	}
	return inv.sorted(), nil
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

func (inv *inventory) sorted() (all []Function) {
	for _, target := range slices.Sorted(maps.Keys(inv.found)) {
		named := inv.found[target]
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, named[name])
		}
	}
	return all
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
