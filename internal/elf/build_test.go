package elf

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The helpers of this file write the formats that the package reads.

func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			v = []byte(s)
		}
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

type part struct {
	name string
	data []byte
}

// library returns an ELF file with these sections and no other.
func library(parts ...part) []byte {
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Shentsize: 64, Shnum: uint16(len(parts) + 2), Shstrndx: uint16(len(parts) + 1),
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)

	body, names := make([]byte, binary.Size(h)), []byte{0}
	table := []elf.Section64{{}}
	add := func(name string, kind elf.SectionType, data []byte) {
		table = append(table, elf.Section64{
			Name: uint32(len(names)), Type: uint32(kind), Off: uint64(len(body)), Size: uint64(len(data)),
		})
		names = append(append(names, name...), 0)
		body = append(body, data...)
	}
	for _, p := range parts {
		add(p.name, elf.SHT_PROGBITS, p.data)
	}
	add(".shstrtab", elf.SHT_STRTAB, append(names, ".shstrtab\x00"...))
	h.Shoff = uint64(len(body))
	copy(body, pack(h))
	return append(body, pack(table)...)
}

type code struct {
	id   string
	size int
}

// bundle returns a clang offload bundle with zeros as code.
func bundle(entries ...code) []byte {
	offset := 32
	for _, e := range entries {
		offset += 24 + len(e.id)
	}
	head := pack(plainMagic, uint64(len(entries)))
	for _, e := range entries {
		head = append(head, pack(uint64(offset), uint64(e.size), uint64(len(e.id)), e.id)...)
		offset += e.size
	}
	return append(head, make([]byte, offset-len(head))...)
}

// compressed wraps a bundle as clang does in one version of its format.
func compressed(version, method uint16, plain []byte) []byte {
	var payload bytes.Buffer
	switch method {
	case 0:
		w := zlib.NewWriter(&payload)
		w.Write(plain)
		w.Close()
	case 1:
		w, _ := zstd.NewWriter(&payload)
		w.Write(plain)
		w.Close()
	}
	head := pack(compressedMagic, version, method)
	size, hash := len(plain), uint64(1)
	switch version {
	case 1:
		head = append(head, pack(uint32(size), hash)...)
	case 2:
		head = append(head, pack(uint32(24+payload.Len()), uint32(size), hash)...)
	case 3:
		head = append(head, pack(uint64(32+payload.Len()), uint64(size), hash)...)
	}
	return append(head, payload.Bytes()...)
}

// entry returns one entry of a fat binary.
func entry(kind uint16, arch uint32, flags uint64, size int) []byte {
	h := entryHeader{Kind: kind, HeaderSize: 64, Size: uint64(size), Arch: arch, Flags: flags}
	return append(pack(h, make([]byte, 16)), make([]byte, size)...)
}

// region returns a fat binary of entries.
func region(entries ...[]byte) []byte {
	body := bytes.Join(entries, nil)
	return append(pack(regionHeader{0xBA55ED50, 1, 16, uint64(len(body))}), body...)
}

func TestLibraryIsReadable(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(library(part{".x", []byte("abc")})))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Section(".x").Data(); string(got) != "abc" {
		t.Errorf("section holds %q", got)
	}
}
