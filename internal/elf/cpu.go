package elf

import (
	"bufio"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"builder/internal/x86"
)

// A CPUUse says that a function has instructions of an extension of the
// processor. Function is "" for code that no symbol names.
type CPUUse struct {
	Feature  x86.Feature
	Function string
	Count    int
	First    uint64 // address of the first
}

// maxUses is far more than a library has functions that use extensions.
const maxUses = 1 << 20

// CPUUses reads all machine code of a library for x86_64 and returns the
// extensions of the processor that it takes, by function, sorted by feature and
// address. Code with bytes that are no instruction is an error: what stands
// behind them was not read.
func CPUUses(r io.ReaderAt) ([]CPUUse, error) {
	img, err := openImage(r)
	if err != nil {
		return nil, err
	}
	if img.machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("its code is for %s and not for x86_64", machineName(img.machine))
	}
	functions, err := img.functions()
	if err != nil {
		return nil, err
	}
	uses := map[useKey]*CPUUse{}
	read := false
	for i := range img.sections {
		s := &img.sections[i]
		if elf.SectionFlag(s.Flags)&elf.SHF_EXECINSTR == 0 || elf.SectionType(s.Type) != elf.SHT_PROGBITS || s.Size == 0 {
			continue
		}
		if err := img.readCode(s, functions, uses); err != nil {
			return nil, fmt.Errorf("section %q: %w", s.name, err)
		}
		read = true
	}
	if !read {
		return nil, errors.New("it has no code")
	}
	var all []CPUUse
	for _, u := range uses {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b CPUUse) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.First, b.First))
	})
	return all, nil
}

type useKey struct {
	feature  x86.Feature
	function string
}

// readCode reads the instructions of a section one after the other.
func (img *image) readCode(s *section, functions []place, uses map[useKey]*CPUUse) error {
	raw, err := img.open(s)
	if err != nil {
		return err
	}
	code := bufio.NewReaderSize(raw, 64<<10)
	for at := s.Addr; at-s.Addr < s.Size; {
		window, err := code.Peek(x86.MaxLength)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(window) == 0 {
			return errors.New("it runs past the end of the file")
		}
		in, err := x86.Decode(window)
		if err != nil {
			return fmt.Errorf("at %#x: %w (% x)", at, err, window)
		}
		if in.Feature != "" {
			if err := note(uses, useKey{in.Feature, nameOf(functions, at)}, at); err != nil {
				return err
			}
		}
		if _, err := code.Discard(in.Length); err != nil {
			return err
		}
		at += uint64(in.Length)
	}
	return nil
}

func note(uses map[useKey]*CPUUse, key useKey, at uint64) error {
	u := uses[key]
	if u == nil {
		if len(uses) == maxUses {
			return fmt.Errorf("more than %d functions use extensions", maxUses)
		}
		u = &CPUUse{Feature: key.feature, Function: key.function, First: at}
		uses[key] = u
	}
	u.Count++
	return nil
}

// place is where in the code a function lies. Of size 0 it lasts until
// the next.
type place struct {
	name       string
	start, end uint64
}

// functions returns the functions of the full symbol table, and of the dynamic
// one where that was stripped, sorted by address.
func (img *image) functions() ([]place, error) {
	s := img.byType(elf.SHT_SYMTAB)
	if s == nil {
		s = img.byType(elf.SHT_DYNSYM)
	}
	if s == nil {
		return nil, nil
	}
	data, err := img.data(s, maxSymbols)
	if err != nil {
		return nil, err
	}
	names, err := img.linked(s)
	if err != nil {
		return nil, err
	}
	var all []place
	for ; len(data) >= elf.Sym64Size; data = data[elf.Sym64Size:] {
		kind := elf.ST_TYPE(data[4])
		if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC || binary.LittleEndian.Uint16(data[6:]) == uint16(elf.SHN_UNDEF) {
			continue
		}
		name, err := nameAt(names, uint64(binary.LittleEndian.Uint32(data)))
		if err != nil {
			return nil, err
		}
		start, size := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
		all = append(all, place{name, start, start + size})
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}

// nameOf returns the name of the function that lies at an address.
func nameOf(functions []place, at uint64) string {
	i := sort.Search(len(functions), func(i int) bool { return functions[i].start > at })
	if i == 0 {
		return ""
	}
	f := functions[i-1]
	if f.end > f.start && at >= f.end {
		return ""
	}
	return f.name
}
