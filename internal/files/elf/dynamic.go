package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Tags with several values. DT_AUXILIARY and DT_FILTER name libraries, which the loader
// loads too.
const (
	tagAuxiliary = elf.DynTag(0x7ffffffd)
	tagFilter    = elf.DynTag(0x7fffffff)
)

// dynamic is the dynamic segment. It has one value per tag, and an ordered list for the
// tags of other libraries.
type dynamic struct {
	*image
	values map[elf.DynTag]uint64
	needed []uint64
	names  string // the string table at DT_STRTAB
}

func readDynamic(img *image) (*dynamic, error) {
	if img.dynamic == nil {
		return nil, errors.New("not a shared library: no dynamic segment")
	}
	data, err := img.at("dynamic segment", img.dynamic.Vaddr, img.dynamic.Filesz, maxTable)
	if err != nil {
		return nil, err
	}
	d := &dynamic{image: img, values: map[elf.DynTag]uint64{}}
	for ; ; data = data[16:] {
		if len(data) < 16 {
			return nil, errors.New("the dynamic segment has no end: the loader would read the bytes after it")
		}
		tag, value := elf.DynTag(binary.LittleEndian.Uint64(data)), binary.LittleEndian.Uint64(data[8:])
		if tag == elf.DT_NULL {
			break
		}
		if err := d.add(tag, value); err != nil {
			return nil, err
		}
	}
	table, size := d.values[elf.DT_STRTAB], d.values[elf.DT_STRSZ]
	if table == 0 {
		return d, errors.New("the dynamic segment has no table of names (DT_STRTAB)")
	}
	d.names, err = img.text("table of names", table, size)
	return d, err
}

func (d *dynamic) add(tag elf.DynTag, value uint64) error {
	switch tag {
	case elf.DT_NEEDED, tagAuxiliary, tagFilter:
		d.needed = append(d.needed, value)
		return nil
	}
	if _, twice := d.values[tag]; twice {
		return fmt.Errorf("the dynamic segment has %v twice, and loaders take the last", tag)
	}
	d.values[tag] = value
	return nil
}

// at reads n bytes from an address of the loaded library.
func (img *image) at(what string, addr, n, limit uint64) ([]byte, error) {
	off, err := img.offset(addr, n)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	return img.part(what, off, n, limit)
}

// text is at for string tables, which stay in memory as one string.
func (img *image) text(what string, addr, n uint64) (string, error) {
	off, err := img.offset(addr, n)
	if err == nil && n > maxNames {
		err = fmt.Errorf("it has %d bytes, above the limit of %d", n, maxNames)
	}
	if err == nil {
		err = img.r.hold(n)
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	var b strings.Builder
	b.Grow(int(n)) // readSegments checked that the file holds n bytes
	_, err = io.CopyN(&b, io.NewSectionReader(img.r, int64(off), int64(n)), int64(n))
	return b.String(), noEOF(err)
}

// count returns the number of dynamic symbols. No field states it. The hash tables
// cover the exported symbols, and the relocations cover the undefined symbols in use.
// The section table covers all symbols, but the loader does not read it.
func (d *dynamic) count(found exports) (int, error) {
	count := max(found.count, 1)
	for _, table := range []struct{ at, size elf.DynTag }{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}} {
		highest, err := d.highestSymbol(d.values[table.at], d.values[table.size])
		if err != nil {
			return 0, fmt.Errorf("reading relocations: %w", err)
		}
		count = max(count, highest+1)
	}
	if s := d.byType(elf.SHT_DYNSYM); s != nil {
		if stated := int(min(s.Size, 1<<40) / elf.Sym64Size); stated >= count {
			return stated, nil
		}
		return 0, fmt.Errorf("section %q has %d symbols, and the loader uses %d", s.name, s.Size/elf.Sym64Size, count)
	}
	return count, nil
}

// highestSymbol returns the highest symbol index in a relocation table.
func (d *dynamic) highestSymbol(addr, size uint64) (highest int, err error) {
	const entry = 24
	if addr == 0 || size == 0 {
		return 0, nil
	}
	off, err := d.offset(addr, size)
	if err != nil {
		return 0, err
	}
	r := io.NewSectionReader(d.r, int64(off), int64(size))
	buffer := make([]byte, min(size, entry<<11))
	for {
		n, err := io.ReadFull(r, buffer)
		for ; n >= entry; n -= entry {
			highest = max(highest, int(binary.LittleEndian.Uint32(buffer[n-12:])))
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			return highest, err
		}
	}
}
