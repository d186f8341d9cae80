package elf

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Sections of NVIDIA's device code. Code compiled for device linking (nvcc -rdc) stays
// in relocatable, and the output of the device linker is in loaded.
const (
	loaded      = ".nv_fatbin"
	relocatable = "__nv_relfatbin"
)

const nvidiaMagic = "\x50\xed\x55\xba"

type regionHeader struct {
	Magic      uint32
	Version    uint16
	HeaderSize uint16
	Size       uint64 // bytes of all entries
}

type entryHeader struct {
	Kind       uint16
	Version    uint16
	HeaderSize uint32
	Size       uint64 // bytes of the payload, including padding
	Packed     uint32 // bytes of a compressed payload, without padding
	_          [8]byte
	Arch       uint32
	_          [8]byte
	Flags      uint64
	_          [8]byte
	Unpacked   uint64 // bytes of a compressed payload after unpacking
}

const (
	kindPTX   = 1
	kindCubin = 2

	flagLZ4    = 1 << 13 // one block: CUDA 12.4, and --compress-mode=speed of 13.0
	flagZstd   = 1 << 15 // one frame: CUDA 13.0
	flagArch   = 1 << 20 // sm_90a: runs on this architecture only
	flagFamily = 1 << 21 // sm_100f: runs on this family only

	maxHeader = 64 << 10
)

// readRegion reads a fat binary. NVIDIA does not document the format. The reader follows
// the output of fatbinary from CUDA 11 to 13: a region header, then entries of header
// and payload. A section may hold many regions.
func readRegion(r *bufio.Reader, visit visitor) error {
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
		if err := readEntry(entries, visit); err != nil {
			return err
		}
	}
	return nil
}

func readEntry(r io.Reader, visit visitor) error {
	var h entryHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return err
	}
	size := uint32(binary.Size(h))
	if h.HeaderSize < size || h.HeaderSize > maxHeader || uint64(h.Packed) > h.Size {
		return fmt.Errorf("an entry has a header of %d bytes, and %d of %d bytes are packed", h.HeaderSize, h.Packed, h.Size)
	}
	if err := skip(r, uint64(h.HeaderSize-size)); err != nil {
		return err
	}
	prefix := map[uint16]string{kindPTX: "compute_", kindCubin: "sm_"}[h.Kind]
	if prefix == "" || h.Size == 0 {
		// A GPU does not run other kinds, such as the intermediate code of link-time
		// optimization.
		return skip(r, h.Size)
	}
	return visitPayload(r, h, prefix, visit)
}

func visitPayload(r io.Reader, h entryHeader, prefix string, visit visitor) error {
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
	o := object{
		target: Target{Vendor: "nvidia", Arch: fmt.Sprintf("%s%d%s", prefix, h.Arch, suffix)},
		method: h.method(), size: h.Unpacked,
	}
	if h.Kind == kindCubin {
		o.machine = elf.EM_CUDA
	}
	length := h.Size
	if o.method != stored {
		length = uint64(h.Packed)
	}
	if err := visitPart(r, length, o, visit); err != nil {
		return err
	}
	return skip(r, h.Size-length)
}

// method returns how the payload is packed. An entry with packed or unpacked sizes but
// without a known method has unknownMethod.
func (h entryHeader) method() method {
	switch h.Flags & (flagLZ4 | flagZstd) {
	case flagLZ4:
		return lz4Block
	case flagZstd:
		return zstdFrame
	case 0:
		if h.Packed == 0 && h.Unpacked == 0 {
			return stored
		}
	}
	return unknownMethod
}
