package elf

import (
	"debug/elf"
	"encoding/binary"
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
