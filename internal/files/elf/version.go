package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// required returns the versions that the loader requires of other libraries, including
// those without a symbol.
func (d *dynamic) required() (versions []elf.DynamicVersionDep, err error) {
	if d.sections[elf.SHT_GNU_VERNEED] == nil {
		return nil, nil
	}
	needed, err := d.file.DynamicVersionNeeds()
	if err != nil {
		return nil, fmt.Errorf("reading the required versions: %w", err)
	}
	for _, library := range needed {
		versions = append(versions, library.Needs...)
	}
	return versions, nil
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
