package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of what is held in memory. A shared library stays far below them: the
// largest of the ROCm stack have 60 sections and 40 MiB of names.
const (
	maxSections = 4096
	maxNames    = 256 << 20 // string table of the dynamic symbols
	maxSymbols  = 256 << 20 // the dynamic symbols, and their version indexes
	maxTable    = 1 << 20   // section names, dynamic section, version tables
	maxName     = 64 << 10  // one name
)

// image is the section table of a library. debug/elf gives the layout and the
// constants, but not the parser: it says of itself that it is not hardened, and
// a few kilobytes of version tables make it use gigabytes.
type image struct {
	r        io.ReaderAt
	machine  elf.Machine
	sections []section
	tables   map[uint32]string // string tables by section, read once
}

type section struct {
	elf.Section64
	name string
}

func openImage(r io.ReaderAt) (*image, error) {
	img, names, err := openSections(r, maxSections)
	if err != nil {
		return nil, err
	}
	return img, img.nameSections(names)
}

// openSections reads the section table without the names, which are in the
// section it returns the index of.
func openSections(r io.ReaderAt, limit uint16) (img *image, names int, err error) {
	var h elf.Header64
	if err := decode(r, 0, &h); err != nil {
		return nil, 0, errors.New("not an ELF file: too short for a header")
	}
	if err := checkHeader(h, limit); err != nil {
		return nil, 0, err
	}
	table := make([]elf.Section64, h.Shnum)
	if err := decode(r, h.Shoff, table); err != nil {
		return nil, 0, fmt.Errorf("reading section table: %w", err)
	}
	img = &image{r: r, machine: elf.Machine(h.Machine), tables: map[uint32]string{}}
	for _, s := range table {
		img.sections = append(img.sections, section{Section64: s})
	}
	return img, int(h.Shstrndx), nil
}

func checkHeader(h elf.Header64, limit uint16) error {
	switch {
	case string(h.Ident[:4]) != elf.ELFMAG:
		return errors.New("not an ELF file: wrong magic")
	case elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64, elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB:
		return errors.New("not a 64-bit little-endian ELF file")
	case h.Shoff == 0 || h.Shnum == 0:
		return errors.New("the ELF file has no section table")
	case h.Shnum > limit || int(h.Shentsize) != binary.Size(elf.Section64{}) || h.Shstrndx >= h.Shnum:
		return fmt.Errorf("the ELF header describes an impossible section table (%d sections of %d bytes)", h.Shnum, h.Shentsize)
	}
	return nil
}

func (img *image) nameSections(index int) error {
	if index == 0 {
		return nil
	}
	names, err := img.data(&img.sections[index], maxTable)
	if err != nil {
		return fmt.Errorf("reading section names: %w", err)
	}
	text := string(names)
	for i := range img.sections {
		s := &img.sections[i]
		if s.name, err = nameAt(text, uint64(s.Name)); err != nil {
			return fmt.Errorf("reading name of section %d: %w", i, err)
		}
	}
	return nil
}

// open returns a reader of the section's bytes in the file.
func (img *image) open(s *section) (*io.SectionReader, error) {
	if elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0 {
		return nil, fmt.Errorf("section %q is compressed, which the loader would refuse", s.name)
	}
	if elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil, fmt.Errorf("section %q has no bytes in the file: is this a debug file?", s.name)
	}
	if int64(s.Off) < 0 || int64(s.Size) < 0 || int64(s.Off+s.Size) < 0 {
		return nil, fmt.Errorf("section %q lies at an impossible place", s.name)
	}
	return io.NewSectionReader(img.r, int64(s.Off), int64(s.Size)), nil
}

// data returns the section's bytes. Memory grows with what the file holds, not
// with what its header claims.
func (img *image) data(s *section, limit uint64) ([]byte, error) {
	if s.Size > limit {
		return nil, fmt.Errorf("section %q has %d bytes, more than the %d that are read", s.name, s.Size, limit)
	}
	r, err := img.open(s)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("reading section %q: %w", s.name, err)
	}
	if uint64(len(b)) != s.Size {
		return nil, fmt.Errorf("section %q runs past the end of the file", s.name)
	}
	return b, nil
}

// byType returns the first section of a type, nil where there is none.
func (img *image) byType(t elf.SectionType) *section {
	for i := range img.sections {
		if elf.SectionType(img.sections[i].Type) == t {
			return &img.sections[i]
		}
	}
	return nil
}

// linked returns the string table that belongs to a section.
func (img *image) linked(s *section) (string, error) {
	if int(s.Link) >= len(img.sections) {
		return "", fmt.Errorf("section %q links to section %d of %d", s.name, s.Link, len(img.sections))
	}
	if table, ok := img.tables[s.Link]; ok {
		return table, nil
	}
	b, err := img.data(&img.sections[s.Link], maxNames)
	if err == nil {
		img.tables[s.Link] = string(b)
	}
	return img.tables[s.Link], err
}

// decode reads a value of fixed size, or a slice of them, at an offset.
func decode(r io.ReaderAt, off uint64, v any) error {
	if int64(off) < 0 {
		return fmt.Errorf("offset %#x lies past the end of the file", off)
	}
	size := int64(binary.Size(v))
	return noEOF(binary.Read(io.NewSectionReader(r, int64(off), size), binary.LittleEndian, v))
}

// nameAt returns the name at an offset of a string table. It shares the table's
// memory, so that a million names that point into one long one cost nothing.
func nameAt(table string, off uint64) (string, error) {
	if off > uint64(len(table)) || off == uint64(len(table)) && off > 0 {
		return "", fmt.Errorf("name at %d lies outside its table of %d bytes", off, len(table))
	}
	rest := table[off:]
	end := strings.IndexByte(rest[:min(len(rest), maxName)], 0)
	if end < 0 && len(rest) > 0 {
		return "", fmt.Errorf("name at %d has no end", off)
	}
	return rest[:max(end, 0)], nil
}
