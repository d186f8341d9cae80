package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// version is the meaning of a symbol's version index: a version required of another
// library, or a version defined by this library, with library "".
type version struct {
	name    string
	library string
}

// maxVersions follows from the 15 bits of an index. It also stops reading a table with
// overlapping entries.
const maxVersions = 1 << 15

// hidden marks a version other than the default. It is not part of the index.
const hidden = 0x8000

// versions holds the required and defined versions of a library by index, and all
// versions the loader requires of other libraries, including those without a symbol.
type versions struct {
	of       map[uint16]version
	required []version
}

// readVersions returns the versions required and defined by the library. Indexes 0 and
// 1 mean no version.
func (d *dynamic) readVersions() (versions, error) {
	all := versions{of: map[uint16]version{}}
	for _, kind := range []struct {
		tag  elf.DynTag
		read func(*versionTable) error
	}{
		{elf.DT_VERNEED, (*versionTable).needs},
		{elf.DT_VERDEF, (*versionTable).definitions},
	} {
		addr := d.values[kind.tag]
		if addr == 0 {
			continue
		}
		data, err := d.at("versions", addr, min(d.room(addr), maxTable), maxTable)
		if err == nil {
			err = kind.read(&versionTable{d.r, data, d.names, &all, maxVersions})
		}
		if err != nil {
			return all, fmt.Errorf("reading the versions at %v: %w", kind.tag, err)
		}
	}
	return all, nil
}

// versionTable reads one of the two tables, a linked list of records.
type versionTable struct {
	meter    *meter
	data     []byte
	names    string
	versions *versions
	left     int // records that may still be read
}

var errVersions = errors.New("the version table points to itself or beyond its end")

// record returns size bytes at an offset.
func (t *versionTable) record(off uint64, size uint64) ([]byte, error) {
	if t.left--; t.left < 0 || off+size > uint64(len(t.data)) {
		return nil, errVersions
	}
	return t.data[off : off+size], nil
}

// needs reads Verneed: a list of required versions for each library.
func (t *versionTable) needs() error {
	for off := uint64(0); ; {
		need, err := t.record(off, 16)
		if err != nil {
			return err
		}
		library, err := t.meter.name(t.names, word(need, 4))
		if err != nil {
			return err
		}
		if err := t.need(library, off+word(need, 8), half(need, 2)); err != nil {
			return err
		}
		next := word(need, 12)
		if next == 0 {
			return nil
		}
		off += next
	}
}

func (t *versionTable) need(library string, off uint64, count uint16) error {
	for range count {
		aux, err := t.record(off, 16)
		if err != nil {
			return err
		}
		name, err := t.meter.name(t.names, word(aux, 8))
		if err != nil {
			return err
		}
		if err := t.put(half(aux, 6), version{name, library}); err != nil {
			return err
		}
		off += word(aux, 12)
	}
	return nil
}

// put records a version. A repeated index is an error: a tool would see only the last
// version, and the loader requires both.
func (t *versionTable) put(index uint16, v version) error {
	index &^= hidden
	if v.library != "" {
		t.versions.required = append(t.versions.required, v)
	}
	if index <= 1 {
		return nil
	}
	if _, twice := t.versions.of[index]; twice {
		return fmt.Errorf("two versions have the index %d: %s is the second", index, v.name)
	}
	t.versions.of[index] = v
	return nil
}

// definitions reads Verdef, the versions defined by the library. Only the first name of
// each counts. The others are its parents.
func (t *versionTable) definitions() error {
	const base = 1 // names the library, not a version
	for off := uint64(0); ; {
		def, err := t.record(off, 20)
		if err != nil {
			return err
		}
		aux, err := t.record(off+word(def, 12), 8)
		if err != nil {
			return err
		}
		name, err := t.meter.name(t.names, word(aux, 0))
		if err != nil {
			return err
		}
		if half(def, 2)&base == 0 {
			if err := t.put(half(def, 4), version{name: name}); err != nil {
				return err
			}
		}
		next := word(def, 16)
		if next == 0 {
			return nil
		}
		off += next
	}
}

// indexTable is Versym: the version index of each dynamic symbol.
type indexTable []byte

func (d *dynamic) versionIndexes(symbols int) (indexTable, error) {
	addr := d.values[elf.DT_VERSYM]
	if addr == 0 {
		return nil, nil
	}
	return d.at("versions of symbols", addr, 2*uint64(symbols), maxSymbols)
}

func (t indexTable) at(i int) uint16 {
	if (i+1)*2 > len(t) {
		return 0
	}
	return half(t, i*2) &^ hidden
}

func half(b []byte, off int) uint16 { return binary.LittleEndian.Uint16(b[off:]) }

func word(b []byte, off int) uint64 { return uint64(binary.LittleEndian.Uint32(b[off:])) }
