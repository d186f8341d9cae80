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
	inv := inventory{unpacker: u, linked: targetSet{}, targets: targetSet{}, found: map[string]map[string]bool{}}
	if err := eachObject(r, inv.look); err != nil {
		return nil, err
	}
	return inv.sorted(), nil
}

type inventory struct {
	*unpacker
	linked, targets targetSet
	found           map[string]map[string]bool // by target and name: true for a kernel
}

func (inv *inventory) look(section string, o object) error {
	linked := inv.linked.has(o.target)
	if section == loaded {
		inv.linked.add(o.target)
	}
	if o.machine != elf.EM_NONE && section == relocatable && linked {
		return nil
	}
	code, err := inv.unpack(o)
	if err != nil {
		return fmt.Errorf("code for %v: %w", o.target, err)
	}
	known := inv.found[o.target.key()]
	if known == nil {
		known = map[string]bool{}
		inv.found[o.target.key()] = known
		inv.targets.add(o.target)
	}
	add := func(name string, kernel bool) { known[name] = known[name] || kernel }
	if o.machine == elf.EM_NONE {
		err = ptxKernels(code, add)
	} else {
		err = objectFunctions(code, o.machine, add)
	}
	if err != nil {
		return fmt.Errorf("code for %v: %w", o.target, err)
	}
	return nil
}

func (inv *inventory) sorted() []Function {
	var all []Function
	for _, target := range inv.targets.sorted() {
		known := inv.found[target.key()]
		for _, name := range slices.Sorted(maps.Keys(known)) {
			all = append(all, Function{target, name, known[name]})
		}
	}
	return all
}
