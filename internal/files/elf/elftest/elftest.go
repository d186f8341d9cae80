// Package elftest makes small shared libraries from values, for tests that need
// one which differs from a good one in a single thing.
//
// What it makes is whole: the dynamic linker of Linux loads it. It shares no code
// with internal/files/elf, so that a mistake of the reader cannot hide in the writer.
package elftest

import (
	"cmp"
	"debug/elf"
)

// Library is a shared library as its dynamic section, its symbols and its texts
// show it. The zero value needs nothing and gives nothing.
type Library struct {
	Machine   string // as platform tags write it: x86_64, which "" stands for, or aarch64
	Soname    string
	Needed    []string
	Rpath     string // directories with colons between them; "" for none
	Runpath   string
	Undefined []Symbol
	Exported  []Symbol
	Texts     []string  // constants, in .rodata
	Sections  []Section // what else it holds, such as .nv_fatbin
}

// Symbol is a dynamic symbol. An undefined one has Library and Version, or
// neither; an exported one may have a Version of its own.
type Symbol struct {
	Name    string
	Version string
	Library string
	Weak    bool
	Code    []byte // of an exported function, at any address; nil returns 0 on x86_64
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

// Section is a section of bytes that the program reads.
type Section struct {
	Name string
	Data []byte
}

// File returns an ELF file with these sections and no other. Nothing loads it.
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
	d := &dynamic{w: newWriter(machines[cmp.Or(l.Machine, "x86_64")], 3), names: table{0}}
	d.symbols(l.Undefined, l.Exported)
	d.texts(l.Texts)
	for _, s := range l.Sections {
		d.w.add(s.Name, elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, s.Data)
	}
	for _, soname := range l.Needed {
		d.name(elf.DT_NEEDED, soname)
	}
	d.name(elf.DT_SONAME, l.Soname)
	d.name(elf.DT_RPATH, l.Rpath)
	d.name(elf.DT_RUNPATH, l.Runpath)
	return d.finish(l.Soname)
}
