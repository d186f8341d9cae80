package elf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// minPage is the smallest page size of a loader.
const minPage = 0x1000

// image is a library as debug/elf reads it, by its section table, after a comparison with
// what the loader maps. The loader reads only the segments. So one file can hold two
// libraries: the section table shows one to tools, and the loader runs the other.
type image struct {
	r       io.ReaderAt
	header  elf.Header64
	file    *elf.File
	loads   []*elf.Prog
	dynamic *elf.Prog // nil if there is none
}

// openImage opens a file that the loader can load, and whose section table agrees with the
// segments.
func openImage(r io.ReaderAt) (*image, error) {
	img := &image{r: r}
	err := binary.Read(io.NewSectionReader(r, 0, 64), binary.LittleEndian, &img.header)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if err := checkHeader(img.header, err != nil); err != nil {
		return nil, err
	}
	if img.file, err = elf.NewFile(r); err != nil {
		return nil, fmt.Errorf("reading the section table: %w", err)
	}
	if len(img.file.Sections) == 0 {
		return nil, errors.New("the ELF file has no section table")
	}
	return img, errors.Join(img.readSegments(), img.agree())
}

// checkHeader refuses files that the Linux loader refuses.
func checkHeader(h elf.Header64, short bool) error {
	abi := elf.OSABI(h.Ident[elf.EI_OSABI])
	switch {
	case short:
		return errors.New("not an ELF file: too short for a header")
	case string(h.Ident[:4]) != elf.ELFMAG:
		return errors.New("not an ELF file: wrong magic")
	case elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64, elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB:
		return errors.New("not a 64-bit little-endian ELF file")
	case h.Ident[elf.EI_VERSION] != byte(elf.EV_CURRENT), h.Version != uint32(elf.EV_CURRENT):
		return fmt.Errorf("the ELF file has version %d.%d, expected 1", h.Ident[elf.EI_VERSION], h.Version)
	case abi != elf.ELFOSABI_NONE && abi != elf.ELFOSABI_LINUX:
		return fmt.Errorf("the ELF file is for %v, not for Linux", abi)
	case elf.Type(h.Type) != elf.ET_DYN && elf.Type(h.Type) != elf.ET_EXEC:
		return fmt.Errorf("the ELF file is %v: no loader loads it", elf.Type(h.Type))
	case h.Phnum > 0 && h.Phentsize != 56, h.Shentsize != 64:
		return fmt.Errorf("the ELF header describes an impossible section table or table of segments (entries of %d and %d bytes)", h.Shentsize, h.Phentsize)
	}
	return nil
}

// readSegments returns an error for values that loaders refuse or interpret differently:
// segments that overlap, two segments that map different bytes of the file to one page,
// or a dynamic segment that is not loaded from its own position in the file. It also
// returns one for code that can change after it was read here.
func (img *image) readSegments() error {
	page := uint64(1 << 62) // the largest possible page size: loaders refuse a smaller alignment
	for _, p := range img.file.Progs {
		switch {
		case p.Type == elf.PT_DYNAMIC && img.dynamic != nil:
			return errors.New("it has two dynamic segments, and loaders take the last")
		case p.Type == elf.PT_DYNAMIC:
			img.dynamic = p
		case p.Type == elf.PT_LOAD:
			img.loads, page = append(img.loads, p), min(page, p.Align)
		}
	}
	for i, p := range img.loads {
		switch {
		case p.Filesz > p.Memsz, p.Off > 1<<62, p.Vaddr > 1<<62, p.Memsz > 1<<62,
			p.Align < minPage, p.Align&(p.Align-1) != 0, (p.Vaddr-p.Off)&(p.Align-1) != 0:
			return fmt.Errorf("segment %d is at an impossible place: %d bytes at %#x of the file, %d at address %#x", i, p.Filesz, p.Off, p.Memsz, p.Vaddr)
		case p.Flags&(elf.PF_W|elf.PF_X) == elf.PF_W|elf.PF_X:
			return fmt.Errorf("segment %d is writable and executable: its code can change when it runs, and no linker makes such a segment without being told to", i)
		case i > 0 && overlap(img.loads[i-1], p, page):
			return fmt.Errorf("segments %d and %d overlap at address %#x: the loader overwrites one with the other", i-1, i, p.Vaddr)
		}
		if n, _ := img.r.ReadAt(make([]byte, 1), int64(p.Off+p.Filesz)-1); p.Filesz > 0 && n != 1 {
			return fmt.Errorf("segment %d runs past the end of the file", i)
		}
	}
	if d := img.dynamic; d != nil {
		if off, err := img.offset(d.Vaddr, d.Filesz); err != nil || off != d.Off {
			return fmt.Errorf("the dynamic segment is at %#x of the file, and the loader has other bytes at its address %#x", d.Off, d.Vaddr)
		}
	}
	return nil
}

// overlap reports whether b begins before a ends, or in a page of a with other bytes of
// the file. The loader maps whole pages.
func overlap(a, b *elf.Prog, page uint64) bool {
	if b.Vaddr < a.Vaddr+a.Memsz || b.Vaddr < a.Vaddr {
		return true
	}
	same := a.Memsz > 0 && (a.Vaddr+a.Memsz-1)/page == b.Vaddr/page
	return same && a.Vaddr-a.Off != b.Vaddr-b.Off
}

// offset returns the position in the file of n bytes loaded to an address. Memory
// filled with zeros by the loader has no position.
func (img *image) offset(addr, n uint64) (uint64, error) {
	for _, p := range img.loads {
		if at := addr - p.Vaddr; addr >= p.Vaddr && at <= p.Filesz && n <= p.Filesz-at {
			return p.Off + at, nil
		}
	}
	return 0, fmt.Errorf("no segment loads %d bytes to address %#x", n, addr)
}

// agree returns an error if the section table does not describe the loaded segments, or
// if two sections share bytes of the file.
func (img *image) agree() error {
	var inFile []*elf.Section
	for i, s := range img.file.Sections {
		if s.Type == elf.SHT_NULL || s.Type == elf.SHT_NOBITS || s.FileSize == 0 {
			continue
		}
		if s.Offset > 1<<62 || s.FileSize > 1<<62 {
			return fmt.Errorf("section %q is at an impossible place", s.Name)
		}
		inFile = append(inFile, s)
		if i == int(img.header.Shstrndx) {
			continue // the loader does not read section names
		}
		if err := img.place(s); err != nil {
			return err
		}
	}
	slices.SortFunc(inFile, func(a, b *elf.Section) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, s := range inFile {
		if i > 0 && s.Offset < inFile[i-1].Offset+inFile[i-1].FileSize {
			return fmt.Errorf("sections %q and %q share bytes of the file", inFile[i-1].Name, s.Name)
		}
		if n, _ := img.r.ReadAt(make([]byte, 1), int64(s.Offset+s.FileSize)-1); n != 1 {
			return fmt.Errorf("section %q runs past the end of the file", s.Name)
		}
	}
	return nil
}

// place compares a section with the bytes the loader maps to its address.
func (img *image) place(s *elf.Section) error {
	if d := img.dynamic; s.Type == elf.SHT_DYNAMIC && (d == nil || s.Offset != d.Off || s.Addr != d.Vaddr) {
		return fmt.Errorf("section %q is at %#x of the file, and the dynamic segment for the loader is elsewhere: two libraries in one file", s.Name, s.Offset)
	}
	if s.Flags&elf.SHF_ALLOC == 0 {
		if s.Flags&elf.SHF_EXECINSTR != 0 || slices.Contains(loadedSections, s.Name) || constants(s.Name) {
			return fmt.Errorf("section %q is not loaded: processes with the library lack it", s.Name)
		}
		return nil
	}
	if s.Flags&elf.SHF_COMPRESSED != 0 {
		return fmt.Errorf("section %q is compressed, and the loader refuses such sections", s.Name)
	}
	off, err := img.offset(s.Addr, s.Size)
	if err != nil {
		return fmt.Errorf("section %q: %w, where the section table places it", s.Name, err)
	}
	if off != s.Offset {
		return fmt.Errorf("section %q is at %#x of the file, and the loader has %#x at its address %#x: two libraries in one file", s.Name, s.Offset, off, s.Addr)
	}
	return nil
}

// loadedSections hold GPU code. A runtime follows pointers into them, so the loader
// must map them.
var loadedSections = []string{hipFatbin, loaded, relocatable}

// bytesOf returns a reader for the bytes of a section in the file, without unpacking.
func (img *image) bytesOf(s *elf.Section) *io.SectionReader {
	return io.NewSectionReader(img.r, int64(s.Offset), int64(s.FileSize))
}

func half(b []byte, off uint64) uint16 { return binary.LittleEndian.Uint16(b[off:]) }

func word(b []byte, off uint64) uint64 { return uint64(binary.LittleEndian.Uint32(b[off:])) }

// eachNote calls found for each note in the content of a section or segment, whose parts
// begin at multiples of align.
func eachNote(notes []byte, align uint64, found func(kind uint64, owner, content []byte) error) error {
	const head = 12
	padded := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	for len(notes) >= head {
		owner, content := word(notes, 0), word(notes, 4)
		start := padded(head + owner)
		if start+padded(content) > uint64(len(notes)) {
			return errors.New("a note does not fit into its section")
		}
		if err := found(word(notes, 8), notes[head:][:owner], notes[start:][:content]); err != nil {
			return err
		}
		notes = notes[start+padded(content):]
	}
	return nil
}
