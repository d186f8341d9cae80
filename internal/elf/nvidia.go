package elf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// NVIDIA documents no format for fat binaries. What is read here is what
// fatbinary writes from CUDA 11 to 13: a region header, then entries of header
// and payload. Sections may hold many regions.
var nvidia = format{
	sections: []string{".nv_fatbin", "__nv_relfatbin"},
	magics:   []string{"\x50\xed\x55\xba"},
	read:     readRegion,
}

type regionHeader struct {
	Magic      uint32
	Version    uint16
	HeaderSize uint16
	Size       uint64 // of all entries
}

type entryHeader struct {
	Kind       uint16
	Version    uint16
	HeaderSize uint32
	Size       uint64 // of the payload, padding included
	_          [12]byte
	Arch       uint32
	_          [8]byte
	Flags      uint64
}

const (
	kindPTX   = 1
	kindCubin = 2

	flagArch   = 1 << 20 // sm_90a: runs on this architecture only
	flagFamily = 1 << 21 // sm_100f: runs on this family only

	maxHeader = 64 << 10
)

func readRegion(r *bufio.Reader, found targetSet) error {
	var h regionHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return err
	}
	size := binary.Size(h)
	if int(h.HeaderSize) < size || h.Size > 1<<62 {
		return fmt.Errorf("the region has a header of %d and entries of %d bytes", h.HeaderSize, h.Size)
	}
	if err := skip(r, uint64(h.HeaderSize)-uint64(size)); err != nil {
		return err
	}
	entries := &io.LimitedReader{R: r, N: int64(h.Size)}
	for entries.N > 0 {
		if err := readEntry(entries, found); err != nil {
			return err
		}
	}
	return nil
}

func readEntry(r io.Reader, found targetSet) error {
	var h entryHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return err
	}
	size := uint32(binary.Size(h))
	if h.HeaderSize < size || h.HeaderSize > maxHeader {
		return fmt.Errorf("an entry has a header of %d bytes", h.HeaderSize)
	}
	if err := skip(r, uint64(h.HeaderSize-size)); err != nil {
		return err
	}
	if err := skip(r, h.Size); err != nil {
		return fmt.Errorf("an entry of %d bytes does not fit its region: %w", h.Size, err)
	}
	return reportEntry(h, found)
}

// reportEntry knows PTX and cubins. Other kinds, such as the intermediate code
// of link-time optimisation, are no code that a GPU is given.
func reportEntry(h entryHeader, found targetSet) error {
	prefix := map[uint16]string{kindPTX: "compute_", kindCubin: "sm_"}[h.Kind]
	if prefix == "" || h.Size == 0 {
		return nil
	}
	if h.Arch == 0 || h.Arch > 9999 {
		return errors.New("an entry names no architecture")
	}
	suffix := ""
	switch {
	case h.Flags&flagArch != 0:
		suffix = "a"
	case h.Flags&flagFamily != 0:
		suffix = "f"
	}
	found.add(Target{Vendor: "nvidia", Arch: fmt.Sprintf("%s%d%s", prefix, h.Arch, suffix)})
	return nil
}
