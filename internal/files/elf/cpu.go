package elf

import (
	"bufio"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"

	"builder/internal/files/x86"
)

// A CPUUse says that a function has instructions of a processor extension. Function is ""
// for code without a symbol.
type CPUUse struct {
	Feature  x86.Feature
	Function string
	First    uint64 // address of the first such instruction
}

// CPUUses reads the sections with code of an x86_64 library and returns the processor
// extensions they use, by function, sorted by feature and address. Invalid instructions
// are an error, because the code after them cannot be read. It does not read code
// outside of sections, which no compiler makes.
func CPUUses(r io.ReaderAt) ([]CPUUse, error) { return ask[[]CPUUse](r, "cpu") }

// cpuUses is the work of a child.
func cpuUses(r io.ReaderAt) ([]CPUUse, error) {
	img, err := openImage(r)
	if err != nil {
		return nil, err
	}
	if img.file.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("its code is for %s, not for x86_64", machineName(img.file.Machine))
	}
	d, err := img.readDynamic()
	if err != nil {
		return nil, err
	}
	code := machineCode{dynamic: d, uses: map[CPUUse]CPUUse{}}
	if err := code.findFunctions(); err != nil {
		return nil, err
	}
	seen := false
	for _, s := range img.file.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS || s.Size == 0 {
			continue
		}
		if err := code.read(s); err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Name, err)
		}
		seen = true
	}
	if !seen {
		return nil, errors.New("it has no code")
	}
	if err := code.demanded(); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(code.uses), func(a, b CPUUse) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.First, b.First))
	}), nil
}

// machineCode is a library with the results read from its code so far.
type machineCode struct {
	*dynamic
	functions []place
	uses      map[CPUUse]CPUUse // by feature and function alone
}

// levels are the bits of isaNeeded, a property in a note of the linker. The loader refuses
// a library on a processor below such a level, whatever its instructions are.
var levels = []string{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}

// GNU_PROPERTY_X86_ISA_1_NEEDED, and the kind of note.
const isaNeeded, propertyNote = 0xc0008002, 5

// demanded notes the features of the levels that the loader demands.
func (c *machineCode) demanded() error {
	for _, p := range c.file.Progs {
		if p.Type != elf.PT_NOTE && p.Type != elf.PT_GNU_PROPERTY {
			continue
		}
		data, err := io.ReadAll(p.Open())
		if err != nil {
			return err
		}
		_ = eachNote(data, min(max(p.Align, 4), 8), func(kind uint64, _, properties []byte) error { // the loader ignores the rest too
			if kind == propertyNote {
				c.readProperties(properties, p)
			}
			return nil
		})
	}
	return nil
}

func (c *machineCode) readProperties(data []byte, p *elf.Prog) {
	for len(data) >= 12 {
		for i, level := range levels {
			features, _ := x86.Level(level)
			for _, f := range features {
				if word(data, 0) == isaNeeded && data[8]>>i&1 == 1 {
					key := CPUUse{Feature: f, Function: "the loader, which demands " + level}
					c.uses[key] = CPUUse{f, key.Function, p.Vaddr}
				}
			}
		}
		data = data[min(8+(word(data, 4)+7)&^7, uint64(len(data))):]
	}
}

// read decodes the instructions of a section in order.
func (c *machineCode) read(s *elf.Section) error {
	code := bufio.NewReaderSize(c.bytesOf(s), 64<<10)
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
			c.note(in.Feature, at)
		}
		if _, err := code.Discard(in.Length); err != nil {
			return err
		}
		at += uint64(in.Length)
	}
	return nil
}

func (c *machineCode) note(f x86.Feature, at uint64) {
	key := CPUUse{Feature: f}
	if i := functionAt(c.functions, at); i >= 0 {
		key.Function = c.functions[i].name
	}
	if first, known := c.uses[key]; !known || at < first.First {
		c.uses[key] = CPUUse{f, key.Function, at}
	}
}

// place is the address range of a function. A function of size 0 extends to the next
// one.
type place struct {
	name       string
	start, end uint64
}

// findFunctions lists the functions in the full symbol table, sorted by address. For a
// stripped library it uses the dynamic symbol table.
func (c *machineCode) findFunctions() error {
	symbols, err := c.file.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		symbols = c.symbols
	} else if err != nil {
		return err
	}
	for _, s := range symbols {
		kind := elf.ST_TYPE(s.Info)
		if (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF {
			c.functions = append(c.functions, place{s.Name, s.Value, s.Value + s.Size})
		}
	}
	slices.SortStableFunc(c.functions, func(a, b place) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// functionAt returns the index of the function at an address, or -1.
func functionAt(functions []place, at uint64) int {
	i := sort.Search(len(functions), func(i int) bool { return functions[i].start > at }) - 1
	if i < 0 || functions[i].end > functions[i].start && at >= functions[i].end {
		return -1
	}
	return i
}
