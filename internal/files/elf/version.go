package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// records is the layout of a version table: a list of records, each with a list of parts.
// The numbers are offsets in a record, and sizes.
type records struct {
	size, count, parts, next uint64
	part, nextPart           uint64
}

var (
	needs       = records{size: 16, count: 2, parts: 8, next: 12, part: 16, nextPart: 12}
	definitions = records{size: 20, count: 6, parts: 12, next: 16, part: 8, nextPart: 4}
)

// hidden marks a version other than the default. It is not part of the index.
const hidden = 0x8000

var errVersions = errors.New("its records lead beyond its end, or their count is another than the length of their list")

// check follows the records as the loader does. The loader reads no count and no size, and
// debug/elf stops at both without an error.
func (l records) check(data []byte) error {
	size := uint64(len(data))
	for at := uint64(0); ; {
		if at+l.size > size {
			return errVersions
		}
		count, part := uint64(half(data, at+l.count)), at+word(data, at+l.parts)
		for i := range count {
			if part+l.part > size {
				return errVersions
			}
			next := word(data, part+l.nextPart)
			if (next == 0) != (i == count-1) {
				return errVersions
			}
			part += next
		}
		next := word(data, at+l.next)
		if next == 0 {
			return nil
		}
		at += next
	}
}

// required returns the versions that the loader requires of other libraries, including
// those without a symbol. It returns an error if debug/elf shows other versions.
func (d *dynamic) required() ([]elf.DynamicVersionDep, error) {
	for kind, layout := range map[elf.SectionType]records{elf.SHT_GNU_VERNEED: needs, elf.SHT_GNU_VERDEF: definitions} {
		s := d.sections[kind]
		if s == nil {
			continue
		}
		if d.sections[elf.SHT_GNU_VERSYM] == nil {
			return nil, fmt.Errorf("section %q holds versions of symbols, and no symbol has one", s.Name)
		}
		data, err := s.Data()
		if err == nil {
			err = layout.check(data)
		}
		if err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Name, err)
		}
	}
	if d.sections[elf.SHT_GNU_VERSYM] == nil || len(d.symbols) == 0 {
		return nil, nil
	}
	return d.uniqueVersions()
}

// uniqueVersions returns the required versions. A repeated index is an error: a tool
// would see only one of the versions, and the loader requires both.
func (d *dynamic) uniqueVersions() (required []elf.DynamicVersionDep, err error) {
	needed, err := d.file.DynamicVersionNeeds()
	if err != nil {
		return nil, fmt.Errorf("reading the required versions: %w", err)
	}
	defined, err := d.file.DynamicVersions()
	if err != nil {
		return nil, fmt.Errorf("reading the defined versions: %w", err)
	}
	names := map[uint16]string{}
	put := func(index uint16, name string) error {
		index &^= hidden
		if name == "" {
			return errors.New("a version has no name in the table of names")
		}
		if was, twice := names[index]; twice && index > 1 {
			return fmt.Errorf("two versions have the index %d: %s and %s", index, was, name)
		}
		names[index] = name
		return nil
	}
	for _, library := range needed {
		if library.Name == "" {
			return nil, errors.New("a library with versions has no name in the table of names")
		}
		for _, v := range library.Needs {
			if err := put(v.Index, v.Dep); err != nil {
				return nil, err
			}
			required = append(required, v)
		}
	}
	for _, v := range defined {
		if v.Flags&elf.VER_FLG_BASE != 0 {
			continue // names the library, not a version
		}
		if err := put(v.Index, v.Name); err != nil {
			return nil, err
		}
	}
	return required, nil
}

func half(b []byte, off uint64) uint16 { return binary.LittleEndian.Uint16(b[off:]) }

func word(b []byte, off uint64) uint64 { return uint64(binary.LittleEndian.Uint32(b[off:])) }
