package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits on memory. Shared libraries stay far below them: the largest of the ROCm stack
// have 60 sections and 40 MiB of names.
const (
	maxSections = 4096
	maxNames    = 256 << 20 // string table of the dynamic symbols
	maxSymbols  = 256 << 20 // dynamic symbols, and their version indexes
	maxTable    = 1 << 20   // section names, dynamic section, version tables
	maxName     = 64 << 10  // one name
)

// image is a library as the loader maps it, with its section table, which must agree
// with the mapping. The package uses the layout and the constants of debug/elf, but not
// its parser: its documentation calls the parser not hardened, and a few kilobytes of
// version tables make it use gigabytes.
type image struct {
	r       *meter
	machine elf.Machine
	segments
	sections []section
	listing  [2]uint64         // start and end of the section table in the file
	names    int               // index of the section with the section names
	tables   map[uint32]string // string tables by section, each read once
}

type section struct {
	elf.Section64
	name string
}

// openLibrary opens a file the loader can load. A section table must agree with the
// segments.
func openLibrary(r io.ReaderAt) (*image, error) {
	img, h, err := openImage(r)
	if err != nil {
		return nil, err
	}
	if err := checkABI(h); err != nil {
		return nil, err
	}
	if img.segments, err = readSegments(img.r, h); err != nil {
		return nil, err
	}
	return img, img.agree()
}

// openSectioned is openLibrary for callers that read sections. It refuses a file
// without a section table.
func openSectioned(r io.ReaderAt) (*image, error) {
	img, err := openLibrary(r)
	if err == nil && len(img.sections) == 0 {
		err = errors.New("the ELF file has no section table, which this search needs")
	}
	return img, err
}

// openImage reads the section table and its names. A file without a section table has
// no sections.
func openImage(r io.ReaderAt) (*image, elf.Header64, error) {
	m := metered(r)
	h, err := readHeader(m)
	if err != nil || h.Shoff == 0 && h.Shnum == 0 {
		return &image{r: m, machine: elf.Machine(h.Machine)}, h, err
	}
	img, err := openSections(m, h, maxSections)
	if err != nil {
		return nil, h, err
	}
	return img, h, img.nameSections(img.names)
}

func readHeader(r io.ReaderAt) (h elf.Header64, err error) {
	err = decode(r, 0, &h)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return h, errors.New("not an ELF file: too short for a header")
	case err != nil:
		return h, err
	case string(h.Ident[:4]) != elf.ELFMAG:
		return h, errors.New("not an ELF file: wrong magic")
	case elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64, elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB:
		return h, errors.New("not a 64-bit little-endian ELF file")
	}
	return h, nil
}

// checkABI refuses files the Linux loader refuses.
func checkABI(h elf.Header64) error {
	abi := elf.OSABI(h.Ident[elf.EI_OSABI])
	switch {
	case h.Ident[elf.EI_VERSION] != byte(elf.EV_CURRENT), h.Version != uint32(elf.EV_CURRENT):
		return fmt.Errorf("the ELF file has version %d.%d, expected 1", h.Ident[elf.EI_VERSION], h.Version)
	case abi != elf.ELFOSABI_NONE && abi != elf.ELFOSABI_LINUX:
		return fmt.Errorf("the ELF file is for %v, not for Linux", abi)
	case elf.Type(h.Type) != elf.ET_DYN && elf.Type(h.Type) != elf.ET_EXEC:
		return fmt.Errorf("the ELF file is %v: no loader loads it", elf.Type(h.Type))
	}
	return nil
}

// openSections reads the section table without the names.
func openSections(m *meter, h elf.Header64, limit uint16) (*image, error) {
	if h.Shoff == 0 || h.Shnum == 0 {
		return nil, errors.New("the ELF file has no section table")
	}
	if h.Shnum > limit || int(h.Shentsize) != binary.Size(elf.Section64{}) || h.Shstrndx >= h.Shnum {
		return nil, fmt.Errorf("the ELF header describes an impossible section table (%d sections of %d bytes)", h.Shnum, h.Shentsize)
	}
	if err := m.spend(int(h.Shnum), weighRecord); err != nil {
		return nil, err
	}
	table := make([]elf.Section64, h.Shnum)
	if err := decode(m, h.Shoff, table); err != nil {
		return nil, fmt.Errorf("reading section table: %w", err)
	}
	img := &image{r: m, machine: elf.Machine(h.Machine), names: int(h.Shstrndx), tables: map[uint32]string{}}
	img.listing = [2]uint64{h.Shoff, h.Shoff + uint64(binary.Size(table))}
	for _, s := range table {
		img.sections = append(img.sections, section{Section64: s})
	}
	return img, nil
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

// open returns a reader for the section's bytes in the file.
func (img *image) open(s *section) (*io.SectionReader, error) {
	if elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0 {
		return nil, fmt.Errorf("section %q is compressed, and the loader refuses such sections", s.name)
	}
	if elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil, fmt.Errorf("section %q has no bytes in the file: is this a debug file?", s.name)
	}
	if int64(s.Off) < 0 || int64(s.Size) < 0 || int64(s.Off+s.Size) < 0 {
		return nil, fmt.Errorf("section %q is at an impossible place", s.name)
	}
	return io.NewSectionReader(img.r, int64(s.Off), int64(s.Size)), nil
}

// data returns the section's bytes.
func (img *image) data(s *section, limit uint64) ([]byte, error) {
	if _, err := img.open(s); err != nil {
		return nil, err
	}
	return img.part(fmt.Sprintf("section %q", s.name), s.Off, s.Size, limit)
}

// part returns n bytes of the file. Its memory grows with the bytes present, not with
// the claims of a header.
func (img *image) part(what string, off, n, limit uint64) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("%s has %d bytes, above the limit of %d", what, n, limit)
	}
	if err := img.r.hold(n); err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	b, err := io.ReadAll(io.NewSectionReader(img.r, int64(off), int64(n)))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	if uint64(len(b)) != n {
		return nil, fmt.Errorf("%s runs past the end of the file", what)
	}
	return b, nil
}

// byType returns the first section of a type, or nil.
func (img *image) byType(t elf.SectionType) *section {
	for i := range img.sections {
		if elf.SectionType(img.sections[i].Type) == t {
			return &img.sections[i]
		}
	}
	return nil
}

// linked returns the string table of a section.
func (img *image) linked(s *section) (string, error) {
	if int(s.Link) >= len(img.sections) {
		return "", fmt.Errorf("section %q links to section %d of %d", s.name, s.Link, len(img.sections))
	}
	if table, ok := img.tables[s.Link]; ok {
		return table, nil
	}
	b, err := img.data(&img.sections[s.Link], maxNames)
	if err == nil {
		err = img.r.hold(uint64(len(b)))
	}
	if err == nil {
		img.tables[s.Link] = string(b)
	}
	return img.tables[s.Link], err
}

// decode reads a value of fixed size, or a slice of such values, at an offset.
func decode(r io.ReaderAt, off uint64, v any) error {
	if int64(off) < 0 {
		return fmt.Errorf("offset %#x is past the end of the file", off)
	}
	size := int64(binary.Size(v))
	return noEOF(binary.Read(io.NewSectionReader(r, int64(off), size), binary.LittleEndian, v))
}

// name is nameAt with a charge to the budget. A million names within one long name cost
// as much work as a million long names.
func (m *meter) name(table string, off uint64) (string, error) {
	name, err := nameAt(table, off)
	if err == nil {
		err = m.spend(1, weighRecord+weighName*len(name))
	}
	return name, err
}

// nameAt returns the name at an offset of a string table. It shares the table's memory.
func nameAt(table string, off uint64) (string, error) {
	if off > uint64(len(table)) || off == uint64(len(table)) && off > 0 {
		return "", fmt.Errorf("name at %d is outside its table of %d bytes", off, len(table))
	}
	rest := table[off:]
	end := strings.IndexByte(rest[:min(len(rest), maxName)], 0)
	if end < 0 && len(rest) > 0 {
		return "", fmt.Errorf("name at %d has no end", off)
	}
	return rest[:max(end, 0)], nil
}
