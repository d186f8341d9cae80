package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// version is what a symbol's version index stands for: a version of another
// library that is required, or one that this library defines (no library then).
type version struct {
	name    string
	library string
}

// An index has 15 bits, so more versions than this contradict each other. The
// bound also stops tables whose entries overlap.
const maxVersions = 1 << 15

// hidden marks a version that is not the default one; it is no part of the index.
const hidden = 0x8000

// readVersions returns the versions that the library requires and defines, by
// index. Indexes 0 and 1 stand for no version.
func readVersions(img *image) (map[uint16]version, error) {
	versions := map[uint16]version{}
	for _, kind := range []struct {
		section elf.SectionType
		read    func(*versionTable) error
	}{
		{elf.SHT_GNU_VERNEED, (*versionTable).needs},
		{elf.SHT_GNU_VERDEF, (*versionTable).definitions},
	} {
		s := img.byType(kind.section)
		if s == nil {
			continue
		}
		data, err := img.data(s, maxTable)
		if err != nil {
			return nil, err
		}
		names, err := img.linked(s)
		if err != nil {
			return nil, err
		}
		if err := kind.read(&versionTable{data, names, versions, maxVersions}); err != nil {
			return nil, fmt.Errorf("reading section %q: %w", s.name, err)
		}
	}
	return versions, nil
}

// versionTable walks one of the two tables: records that point to records.
type versionTable struct {
	data     []byte
	names    string
	versions map[uint16]version
	left     int // records that may still be read
}

var errVersions = errors.New("the version table points outside itself or to itself")

// record returns size bytes at an offset.
func (t *versionTable) record(off uint64, size uint64) ([]byte, error) {
	if t.left--; t.left < 0 || off+size > uint64(len(t.data)) {
		return nil, errVersions
	}
	return t.data[off : off+size], nil
}

// needs reads Verneed: per library a list of the versions that it must have.
func (t *versionTable) needs() error {
	for off := uint64(0); ; {
		need, err := t.record(off, 16)
		if err != nil {
			return err
		}
		library, err := nameAt(t.names, word(need, 4))
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
		name, err := nameAt(t.names, word(aux, 8))
		if err != nil {
			return err
		}
		t.versions[half(aux, 6)&^hidden] = version{name, library}
		off += word(aux, 12)
	}
	return nil
}

// definitions reads Verdef: the versions that the library itself has. Only the
// first name of each counts, the others are its parents.
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
		name, err := nameAt(t.names, word(aux, 0))
		if err != nil {
			return err
		}
		if half(def, 2)&base == 0 {
			t.versions[half(def, 4)&^hidden] = version{name: name}
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

func versionIndexes(img *image) (indexTable, error) {
	s := img.byType(elf.SHT_GNU_VERSYM)
	if s == nil {
		return nil, nil
	}
	return img.data(s, maxSymbols)
}

func (t indexTable) at(i int) uint16 {
	if (i+1)*2 > len(t) {
		return 0
	}
	return half(t, i*2) &^ hidden
}

func half(b []byte, off int) uint16 { return binary.LittleEndian.Uint16(b[off:]) }

func word(b []byte, off int) uint64 { return uint64(binary.LittleEndian.Uint32(b[off:])) }
