package elf

import (
	"debug/elf"
	"fmt"
	"slices"
)

// tableTags maps the types of sections to the dynamic tag by which the loader finds the
// same table.
var tableTags = map[elf.SectionType]elf.DynTag{
	elf.SHT_DYNSYM: elf.DT_SYMTAB, elf.SHT_HASH: elf.DT_HASH, elf.SHT_GNU_HASH: elf.DT_GNU_HASH,
	elf.SHT_GNU_VERSYM: elf.DT_VERSYM, elf.SHT_GNU_VERNEED: elf.DT_VERNEED, elf.SHT_GNU_VERDEF: elf.DT_VERDEF,
}

// agree returns an error if the section table does not describe the loaded segments.
// One file can hold two libraries: the section table shows one to tools, and the loader
// runs the other.
func (img *image) agree() error {
	for i := range img.sections {
		if i == img.names {
			continue // the loader does not read section names
		}
		if err := img.place(&img.sections[i]); err != nil {
			return err
		}
	}
	if img.dynamic == nil {
		if s := img.byType(elf.SHT_DYNAMIC); s != nil {
			return fmt.Errorf("section %q is a dynamic section without a segment for the loader", s.name)
		}
	}
	return nil
}

// place compares a section with the bytes the loader maps to its address.
func (img *image) place(s *section) error {
	kind := elf.SectionType(s.Type)
	if kind == elf.SHT_NULL || kind == elf.SHT_NOBITS || s.Size == 0 {
		return nil
	}
	if d := img.dynamic; kind == elf.SHT_DYNAMIC && (d == nil || s.Off != d.Off || s.Addr != d.Vaddr) {
		return fmt.Errorf("section %q is at %#x of the file, and the dynamic segment for the loader is elsewhere: two libraries in one file", s.name, s.Off)
	}
	if elf.SectionFlag(s.Flags)&elf.SHF_ALLOC == 0 {
		if elf.SectionFlag(s.Flags)&elf.SHF_EXECINSTR != 0 || slices.Contains(loadedSections, s.name) || constants(s.name) {
			return fmt.Errorf("section %q is not loaded: processes with the library lack it", s.name)
		}
		return nil
	}
	off, err := img.offset(s.Addr, s.Size)
	if err != nil {
		return fmt.Errorf("section %q: %w, where the section table places it", s.name, err)
	}
	if off != s.Off {
		return fmt.Errorf("section %q is at %#x of the file, and the loader has %#x at its address %#x: two libraries in one file", s.name, s.Off, off, s.Addr)
	}
	return nil
}

// loadedSections hold GPU code. A runtime follows pointers into them, so the loader
// must map them.
var loadedSections = []string{hipFatbin, loaded, relocatable}

// agree compares the addresses of tables in the section table with those in the dynamic
// segment.
func (d *dynamic) agree() error {
	for i := range d.sections {
		s := &d.sections[i]
		tag, ok := tableTags[elf.SectionType(s.Type)]
		if !ok {
			continue
		}
		if s.Addr != d.values[tag] && s.Size > 0 {
			return fmt.Errorf("section %q is at address %#x, and %v for the loader has %#x: two libraries in one file", s.name, s.Addr, tag, d.values[tag])
		}
	}
	return nil
}
