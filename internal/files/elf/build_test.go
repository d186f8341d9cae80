package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"builder/test/kit/elftest"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The helpers of this file write the formats read by the package.

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

// library returns a library with these sections.
func library(parts ...part) []byte {
	var l elftest.Library
	for _, p := range parts {
		l.Sections = append(l.Sections, elftest.Section{Name: p.name, Data: p.data})
	}
	return l.Bytes()
}

func amdCode(id string, data []byte) elftest.Code { return elftest.Code{ID: id, Data: data} }

// header returns the header of an ELF file with the given number of sections.
func header(kind elf.Type, machine elf.Machine, sections, names int) elf.Header64 {
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: 1,
		Shentsize: 64, Shnum: uint16(sections), Shstrndx: uint16(names),
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	return h
}

// Symbols for the code objects of tests.
func cudaKernel(name string) symbol             { return symbol{name, elf.STT_FUNC, cudaEntry, 1, 128} }
func cudaFunction(name string) symbol           { return symbol{name, elf.STT_FUNC, 0, 1, 128} }
func outside(name string) symbol                { return symbol{name, elf.STT_FUNC, 0, elf.SHN_UNDEF, 0} }
func amdFunction(name string) symbol            { return symbol{name, elf.STT_FUNC, 0, 1, 128} }
func amdObject(name string, size uint64) symbol { return symbol{name, elf.STT_OBJECT, 0, 1, size} }

type symbol struct {
	name    string
	kind    elf.SymType
	other   byte
	section elf.SectionIndex
	size    uint64
}

// labelled returns a code object with another number of its target.
func labelled(code []byte, number byte) []byte {
	code = bytes.Clone(code)
	code[48] = number
	return code
}

// codeObject returns an ELF file for sm_90 or gfx942 with one symbol table.
func codeObject(machine elf.Machine, symbols ...symbol) []byte {
	h := header(elf.ET_EXEC, machine, 3, 0)
	h.Flags = map[elf.Machine]uint32{elf.EM_CUDA: 90, elf.EM_AMDGPU: 0x4c}[machine]
	names, table := []byte{0}, make([]byte, elf.Sym64Size)
	for _, s := range symbols {
		table = append(table, pack(elf.Sym64{
			Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, s.kind),
			Other: s.other, Shndx: uint16(s.section), Size: s.size,
		})...)
		names = append(append(names, s.name...), 0)
	}
	h.Shoff = uint64(binary.Size(h) + len(table) + len(names))
	return append(pack(h, table, names), pack([]elf.Section64{
		{},
		{Type: uint32(elf.SHT_SYMTAB), Link: 2, Off: uint64(binary.Size(h)), Size: uint64(len(table))},
		{Type: uint32(elf.SHT_STRTAB), Off: uint64(binary.Size(h) + len(table)), Size: uint64(len(names))},
	})...)
}

type code struct {
	id   string
	size int
}

// bundle returns a clang offload bundle with zeros as code.
func bundle(entries ...code) []byte {
	var objects []elftest.Code
	for _, e := range entries {
		objects = append(objects, amdCode(e.id, make([]byte, e.size)))
	}
	return elftest.Bundle(objects...)
}

// entry returns one entry of a fat binary, with zeros as code.
func entry(kind uint16, arch uint32, flags uint64, size int) []byte {
	return elftest.Entry(kind, arch, flags, make([]byte, size))
}

// entryOf returns an entry with code packed according to flags.
func entryOf(kind uint16, arch uint32, flags uint64, plain []byte) []byte {
	h := entryHeader{Kind: kind, HeaderSize: 64, Arch: arch, Flags: flags}
	payload := plain
	switch flags & (flagLZ4 | flagZstd) {
	case flagLZ4:
		payload = make([]byte, lz4.CompressBlockBound(len(plain)))
		n, err := lz4.CompressBlock(plain, payload, nil)
		if err != nil || n == 0 {
			panic("lz4 cannot pack this")
		}
		payload = payload[:n]
	case flagZstd:
		w, _ := zstd.NewWriter(nil)
		payload = w.EncodeAll(plain, nil)
	}
	if len(payload) != len(plain) {
		h.Packed, h.Unpacked = uint32(len(payload)), uint64(len(plain))
	}
	padding := make([]byte, -len(payload)&7)
	h.Size = uint64(len(payload) + len(padding))
	return pack(h, payload, padding)
}

// edited applies edits from a fuzzer to a file. Every four bytes give an offset (two
// bytes), a kind of change and a value. Fuzzing covers these few bytes and not the
// file, because Go's fuzzer spends a minute on minimizing each input of a kilobyte.
func edited(file, edits []byte) []byte {
	file = bytes.Clone(file)
	for ; len(edits) >= 4 && len(file) > 8; edits = edits[4:] {
		at, value := int(binary.LittleEndian.Uint16(edits))%(len(file)-8), edits[3]
		switch edits[2] % 5 {
		case 0:
			file[at] = value
		case 1:
			binary.LittleEndian.PutUint64(file[at:], uint64(int64(int8(value))))
		case 2:
			file = file[:at]
		case 3:
			copy(file[at:], file[int(value)*8%len(file):][:8])
		case 4:
			binary.LittleEndian.PutUint64(file[at:], uint64(value)<<(value%57))
		}
	}
	return file
}

// fuzz fuzzes edits of these files.
func fuzz(f *testing.F, files [][]byte, check func(*testing.T, []byte)) {
	for i := range files {
		f.Add(byte(i), []byte{})
		f.Add(byte(i), []byte{0x28, 0, 1, 0, 0x3c, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, which byte, edits []byte) {
		check(t, edited(files[int(which)%len(files)], edits[:min(len(edits), 64)]))
	})
}
