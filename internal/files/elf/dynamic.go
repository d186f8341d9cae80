package elf

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// tables maps the types of sections to the dynamic tag by which the loader finds the same
// table.
var tables = map[elf.SectionType]elf.DynTag{
	elf.SHT_DYNSYM: elf.DT_SYMTAB, elf.SHT_HASH: elf.DT_HASH, elf.SHT_GNU_HASH: elf.DT_GNU_HASH,
	elf.SHT_GNU_VERSYM: elf.DT_VERSYM, elf.SHT_GNU_VERNEED: elf.DT_VERNEED, elf.SHT_GNU_VERDEF: elf.DT_VERDEF,
}

// dynamic is the dynamic segment, with the sections that hold its tables. Methods of
// debug/elf read these sections.
type dynamic struct {
	*image
	values   map[elf.DynTag]uint64
	needed   []uint64 // names of the libraries that the loader loads too
	strings  []byte   // the table of names
	sections map[elf.SectionType]*elf.Section
	symbols  []elf.Symbol   // without the first, which is empty
	fixed    []*elf.Section // gates read these as the file has them
}

// readDynamic reads the dynamic segment and the dynamic symbols. It returns an error if a
// loader finds other tables than those that the section table shows.
func (img *image) readDynamic() (*dynamic, error) {
	if img.dynamic == nil {
		return nil, errors.New("not a shared library: no dynamic segment")
	}
	d := &dynamic{image: img, values: map[elf.DynTag]uint64{}, sections: map[elf.SectionType]*elf.Section{}}
	if err := d.findSections(); err != nil {
		return nil, err
	}
	if err := d.readValues(); err != nil {
		return nil, err
	}
	if err := d.sameTables(); err != nil {
		return nil, err
	}
	symbols, err := img.file.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, fmt.Errorf("reading the dynamic symbols: %w", err)
	}
	d.symbols = symbols
	if s := d.sections[elf.SHT_GNU_VERSYM]; s != nil && s.Size != uint64(2*(len(symbols)+1)) {
		return nil, fmt.Errorf("section %q has %d bytes for the versions of %d symbols", s.Name, s.Size, len(symbols)+1)
	}
	for _, s := range img.file.Sections {
		read := s.Flags&elf.SHF_EXECINSTR != 0 || slices.Contains(loadedSections, s.Name) || constants(s.Name)
		if read && s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && s.Size > 0 {
			d.fixed = append(d.fixed, s)
		}
	}
	return d, d.eachRelocation(d.allowed)
}

// findSections finds the section of each table, and refuses a second of one type.
func (d *dynamic) findSections() error {
	for _, s := range d.file.Sections {
		if _, isTable := tables[s.Type]; !isTable && s.Type != elf.SHT_DYNAMIC {
			continue
		}
		if first := d.sections[s.Type]; first != nil {
			return fmt.Errorf("sections %q and %q have the same type: tools read one of them", first.Name, s.Name)
		}
		d.sections[s.Type] = s
	}
	if d.sections[elf.SHT_DYNAMIC] == nil {
		return errors.New("no section shows the dynamic segment for the loader")
	}
	return nil
}

// readValues reads the dynamic section up to its end for the loader. The methods of
// debug/elf read on after it, where chrpath leaves entries. A value of 0 is as none.
func (d *dynamic) readValues() error {
	data, err := d.sections[elf.SHT_DYNAMIC].Data()
	if err != nil {
		return err
	}
	for ; len(data) >= 16; data = data[16:] {
		tag, value := elf.DynTag(binary.LittleEndian.Uint64(data)), binary.LittleEndian.Uint64(data[8:])
		switch {
		case tag == elf.DT_NULL:
			return nil
		case tag == elf.DT_NEEDED, tag == elf.DT_AUXILIARY, tag == elf.DT_FILTER:
			d.needed = append(d.needed, value)
		case d.values[tag] != 0:
			return fmt.Errorf("the dynamic segment has %v twice, and loaders take the last", tag)
		default:
			d.values[tag] = value
		}
	}
	return errors.New("the dynamic segment has no end: the loader would read the bytes after it")
}

// sameTables compares the addresses of tables in the section table with those in the
// dynamic segment.
func (d *dynamic) sameTables() error {
	for kind, tag := range tables {
		at, name := uint64(0), "none"
		if s := d.sections[kind]; s != nil {
			at, name = s.Addr, s.Name
		}
		if at != d.values[tag] {
			return fmt.Errorf("%v for the loader is at address %#x, and section %q is at %#x: two libraries in one file", tag, d.values[tag], name, at)
		}
	}
	for _, kind := range []elf.SectionType{elf.SHT_DYNAMIC, elf.SHT_DYNSYM} {
		s := d.sections[kind]
		if s == nil {
			continue
		}
		if int(s.Link) >= len(d.file.Sections) || d.file.Sections[s.Link].Addr != d.values[elf.DT_STRTAB] {
			return fmt.Errorf("section %q has other names than the loader, which reads those at address %#x: two libraries in one file", s.Name, d.values[elf.DT_STRTAB])
		}
	}
	var err error
	d.strings, err = d.file.Sections[d.sections[elf.SHT_DYNAMIC].Link].Data()
	return err
}

// relocation is a place to which the loader writes.
type relocation struct {
	at           uint64
	kind, symbol uint32
}

// DT_RELR and DT_RELRSZ, the table of packed relocations.
const dtRelr, dtRelrSize = elf.DynTag(36), elf.DynTag(35)

// eachRelocation visits the relocations until an error. It reads those of DT_RELR, which
// are packed, as relocations without a symbol: an even entry is the address of a word, an
// odd one has a bit for each of the next 63 words.
func (d *dynamic) eachRelocation(visit func(relocation) error) error {
	next := uint64(0)
	packed := func(entry []byte) (err error) {
		bits := binary.LittleEndian.Uint64(entry)
		if bits&1 == 0 {
			next = bits + 8
			return visit(relocation{at: bits})
		}
		for i := range uint64(63) {
			if err == nil && bits>>(i+1)&1 == 1 {
				err = visit(relocation{at: next + 8*i})
			}
		}
		next += 63 * 8
		return err
	}
	plain := func(b []byte) error {
		return visit(relocation{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])})
	}
	return cmp.Or(
		d.eachEntry(elf.DT_RELA, elf.DT_RELASZ, 24, plain),
		d.eachEntry(elf.DT_JMPREL, elf.DT_PLTRELSZ, 24, plain),
		d.eachEntry(dtRelr, dtRelrSize, 8, packed))
}

// eachEntry visits the entries of a table of relocations until an error.
func (d *dynamic) eachEntry(at, length elf.DynTag, size int, visit func([]byte) error) error {
	if d.values[length] == 0 {
		return nil
	}
	off, err := d.offset(d.values[at], d.values[length])
	if err != nil {
		return fmt.Errorf("reading relocations: %w", err)
	}
	data, err := io.ReadAll(io.NewSectionReader(d.r, int64(off), int64(d.values[length])))
	if err != nil {
		return fmt.Errorf("reading relocations: %w", err)
	}
	for ; len(data) >= size; data = data[size:] {
		if err := visit(data); err != nil {
			return err
		}
	}
	return nil
}

// allowed returns an error if the loader uses a symbol after the last one of the section,
// because no tag states their number, or writes to code or constants, because processes then
// have others than the file.
func (d *dynamic) allowed(r relocation) error {
	if int64(r.symbol) > int64(len(d.symbols)) {
		return fmt.Errorf("the loader uses symbol %d, and the section table shows %d", r.symbol, len(d.symbols)+1)
	}
	size := uint64(8)
	switch elf.R_X86_64(r.kind) {
	case elf.R_X86_64_TLSDESC:
		size = 16
	case elf.R_X86_64_COPY:
		if d.file.Machine == elf.EM_X86_64 && r.symbol > 0 {
			size = d.symbols[r.symbol-1].Size
		}
	}
	for _, s := range d.fixed {
		if s.Addr-r.at < size || r.at-s.Addr < s.Size {
			return fmt.Errorf("the loader writes to section %q at address %#x: processes have other bytes there than the file", s.Name, r.at)
		}
	}
	return nil
}

// name returns the name at an offset of the table of names.
func (d *dynamic) name(off uint64) (string, error) {
	if off >= uint64(len(d.strings)) {
		return "", fmt.Errorf("a name at %d is outside its table of %d bytes", off, len(d.strings))
	}
	name, _, found := bytes.Cut(d.strings[off:], []byte{0})
	if !found {
		return "", fmt.Errorf("the name at %d has no end", off)
	}
	return string(name), nil
}
