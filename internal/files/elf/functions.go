package elf

import (
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Function is one function in the device code for one target. The host can start a
// kernel. Kernels call the other functions, often through a table, so a library can
// have all its kernels and still lack the functions they call.
type Function struct {
	Target Target
	Name   string // as mangled by the compiler
	Kernel bool
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
	inv := inventory{unpacker: u, linked: map[string]bool{}, found: map[string]functionsOf{}}
	if err := eachObject(r, inv.look); err != nil {
		return nil, err
	}
	return inv.sorted(), nil
}

type inventory struct {
	*unpacker
	linked map[string]bool // keys of the targets with code from the device linker
	found  map[string]functionsOf
}

// functionsOf has the names of the functions for a target, true for a kernel.
type functionsOf struct {
	target Target
	names  map[string]bool
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
	if _, known := inv.found[key]; !known {
		inv.found[key] = functionsOf{o.target, map[string]bool{}}
	}
	names := inv.found[key].names
	add := func(name string, kernel bool) { names[name] = names[name] || kernel }
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
	for _, of := range inOrder(inv.found) {
		for _, name := range slices.Sorted(maps.Keys(of.names)) {
			all = append(all, Function{of.target, name, of.names[name]})
		}
	}
	return all
}
