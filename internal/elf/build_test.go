package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"builder/internal/elf/elftest"
)

// The helpers of this file give the formats that the package reads short names.

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
	var sections []elftest.Section
	for _, p := range parts {
		sections = append(sections, elftest.Section{Name: p.name, Data: p.data})
	}
	return elftest.File(sections...)
}

type code struct {
	id   string
	size int
}

// bundle returns a clang offload bundle with zeros as code.
func bundle(entries ...code) []byte {
	var all []elftest.Code
	for _, e := range entries {
		all = append(all, elftest.Code{ID: e.id, Data: make([]byte, e.size)})
	}
	return elftest.Bundle(all...)
}

var (
	compressed = elftest.Compress
	region     = elftest.Region
)

// entry returns one entry of a fat binary, with zeros as code.
func entry(kind uint16, arch uint32, flags uint64, size int) []byte {
	return elftest.Entry(kind, arch, flags, make([]byte, size))
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
