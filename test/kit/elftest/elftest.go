// Package elftest makes small shared libraries from values, for tests with a library
// that differs from a good one in a single property.
//
// The dynamic linker of Linux loads these libraries. The package shares no code with
// internal/files/elf, because a mistake in shared code would stay hidden.
package elftest

import (
	"cmp"
	"debug/elf"
)

// Library describes a shared library by its dynamic section, symbols and texts. The
// zero value needs no library and exports no symbol.
type Library struct {
	Machine   string // as in platform tags: x86_64 (also "") or aarch64
	Soname    string
	Needed    []string
	Rpath     string // directories separated by colons; "" for none
	Runpath   string
	Undefined []Symbol
	Exported  []Symbol
	Texts     []string  // constants, in .rodata
	Sections  []Section // additional sections, such as .nv_fatbin
	// Relocations are written by the loader over the code of exported functions.
	Relocations []Relocation
	Writable    bool // its code
	Level       int  // of x86-64 that the loader demands, by the note of a linker; 0 for none
}

// Relocation is an R_X86_64_64: the loader writes the sum of the value of an undefined weak
// symbol, 0, and Code as a number to the beginning of an exported function.
type Relocation struct {
	Function, Symbol string
	Code             [8]byte
}

// Symbol is a dynamic symbol. An undefined symbol has both Library and Version, or
// neither. An exported symbol may have a Version of its own.
type Symbol struct {
	Name    string
	Version string
	Library string
	Weak    bool
	Code    []byte // position-independent code of an exported function; nil returns 0 on x86_64
}

// From lists undefined symbols of one version of one library.
func From(library, version string, names ...string) []Symbol {
	var symbols []Symbol
	for _, name := range names {
		symbols = append(symbols, Symbol{Name: name, Version: version, Library: library})
	}
	return symbols
}

// Named lists symbols without a version.
func Named(names ...string) []Symbol { return From("", "", names...) }

// Section is a section of data read by the program.
type Section struct {
	Name string
	Data []byte
}

// File returns an ELF file with exactly these sections. The loader does not load it.
func File(sections ...Section) []byte {
	w := newWriter(elf.EM_X86_64, 0)
	for _, s := range sections {
		w.add(s.Name, elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, s.Data)
	}
	return w.bytes()
}

// Bytes returns the library as a file.
func (l Library) Bytes() []byte {
	machines := map[string]elf.Machine{"x86_64": elf.EM_X86_64, "aarch64": elf.EM_AARCH64}
	d := &dynamic{w: newWriter(machines[cmp.Or(l.Machine, "x86_64")], 4), names: table{0}}
	d.symbols(l.Undefined, l.Exported)
	d.texts(l.Texts)
	for _, s := range l.Sections {
		d.w.add(s.Name, elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, s.Data)
	}
	d.level(l.Level)
	d.relocations(l)
	for _, soname := range l.Needed {
		d.name(elf.DT_NEEDED, soname)
	}
	d.name(elf.DT_SONAME, l.Soname)
	d.name(elf.DT_RPATH, l.Rpath)
	d.name(elf.DT_RUNPATH, l.Runpath)
	file := d.finish(l.Soname)
	if l.Writable {
		file[64+4] |= byte(elf.PF_W) // the flags of the first segment
	}
	return file
}
