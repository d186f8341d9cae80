package elf

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
)

// maxSegments is far above the number written by linkers. A library has about ten.
const maxSegments = 256

// minPage is the smallest page size of a loader.
const minPage = 0x1000

// segments is the file as the dynamic loader maps it to addresses. The loader reads
// only the segments, not the section table.
type segments struct {
	loads   []elf.Prog64
	dynamic *elf.Prog64 // nil if there is none
	table   [2]uint64   // start and end of the program headers in the file
}

// readSegments reads the program headers. It refuses values that loaders refuse or
// interpret differently.
func readSegments(r io.ReaderAt, h elf.Header64) (s segments, err error) {
	if h.Phoff == 0 && h.Phnum == 0 {
		return s, nil
	}
	if h.Phnum > maxSegments || int(h.Phentsize) != progSize { // also refuses PN_XNUM
		return s, fmt.Errorf("the ELF header describes an impossible table of segments (%d of %d bytes)", h.Phnum, h.Phentsize)
	}
	table := make([]elf.Prog64, h.Phnum)
	if err := decode(r, h.Phoff, table); err != nil {
		return s, fmt.Errorf("reading table of segments: %w", err)
	}
	s.table = [2]uint64{h.Phoff, h.Phoff + uint64(len(table))*progSize}
	for i, p := range table {
		switch elf.ProgType(p.Type) {
		case elf.PT_LOAD:
			s.loads = append(s.loads, p)
		case elf.PT_DYNAMIC:
			if s.dynamic != nil {
				return s, errors.New("it has two dynamic segments, and loaders take the last")
			}
			s.dynamic = &table[i]
		}
	}
	return s, s.check(r)
}

const (
	elfHeaderSize = 64
	progSize      = 56
)

// check returns an error if segments overlap, if two segments map different bytes of
// the file to one page, or if a segment ends after the end of the file. The dynamic
// segment must be loaded from its own position in the file.
func (s segments) check(r io.ReaderAt) error {
	page := uint64(1 << 62) // the largest possible page size: loaders refuse a smaller alignment
	for _, p := range s.loads {
		page = min(page, p.Align)
	}
	for i, p := range s.loads {
		switch {
		case p.Filesz > p.Memsz, p.Off > 1<<62, p.Vaddr > 1<<62, p.Memsz > 1<<62,
			p.Align < minPage, p.Align&(p.Align-1) != 0, (p.Vaddr-p.Off)&(p.Align-1) != 0:
			return fmt.Errorf("segment %d is at an impossible place: %d bytes at %#x of the file, %d at address %#x", i, p.Filesz, p.Off, p.Memsz, p.Vaddr)
		case i == 0:
		case overlap(s.loads[i-1], p, page):
			return fmt.Errorf("segments %d and %d overlap at address %#x: the loader overwrites one with the other", i-1, i, p.Vaddr)
		}
		if p.Filesz == 0 {
			continue
		}
		if n, err := r.ReadAt(make([]byte, 1), int64(p.Off+p.Filesz)-1); n != 1 {
			return fmt.Errorf("segment %d runs past the end of the file: %w", i, orEOF(err))
		}
	}
	if d := s.dynamic; d != nil {
		if off, err := s.offset(d.Vaddr, d.Filesz); err != nil || off != d.Off {
			return fmt.Errorf("the dynamic segment is at %#x of the file, and the loader has other bytes at its address %#x", d.Off, d.Vaddr)
		}
	}
	return nil
}

// overlap reports whether b begins before a ends, or in a page of a with other bytes of
// the file. The loader maps whole pages.
func overlap(a, b elf.Prog64, page uint64) bool {
	if b.Vaddr < a.Vaddr+a.Memsz || b.Vaddr < a.Vaddr {
		return true
	}
	same := a.Memsz > 0 && (a.Vaddr+a.Memsz-1)/page == b.Vaddr/page
	return same && a.Vaddr-a.Off != b.Vaddr-b.Off
}

// offset returns the position in the file of n bytes loaded to an address. Memory
// filled with zeros by the loader has no position.
func (s segments) offset(addr, n uint64) (uint64, error) {
	for _, p := range s.loads {
		if at := addr - p.Vaddr; addr >= p.Vaddr && at <= p.Filesz && n <= p.Filesz-at {
			return p.Off + at, nil
		}
	}
	return 0, fmt.Errorf("no segment loads %d bytes to address %#x", n, addr)
}

// room returns the number of bytes of the file loaded from an address on.
func (s segments) room(addr uint64) uint64 {
	for _, p := range s.loads {
		if at := addr - p.Vaddr; addr >= p.Vaddr && at < p.Filesz {
			return p.Filesz - at
		}
	}
	return 0
}
