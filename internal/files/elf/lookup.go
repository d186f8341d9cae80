package elf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ReadLinks is [Read] without the symbols: it returns the soname, the needed libraries
// and their search paths. It is cheap for libraries of any size.
func ReadLinks(r io.ReaderAt) (*File, error) {
	img, err := openLibrary(r)
	if err != nil {
		return nil, err
	}
	d, err := readDynamic(img)
	if err != nil {
		return nil, err
	}
	f := &File{Machine: machineName(img.machine)}
	return f, f.readNames(d)
}

// FindSection returns the section with the given name, without its digest.
func FindSection(r io.ReaderAt, name string) (s Section, ok bool, err error) {
	img, _, err := openImage(r)
	if err != nil {
		return s, false, err
	}
	for i := range img.sections {
		if have := &img.sections[i]; have.name == name {
			raw, err := img.open(have)
			return Section{Name: name, Size: int64(have.Size), r: raw}, err == nil, err
		}
	}
	return s, false, nil
}

// ErrNoSymbol means that a library has no symbol of that name. Stripped libraries have
// only dynamic symbols.
var ErrNoSymbol = errors.New("symbol not found")

// Constant returns n bytes at the address of a symbol, including local symbols. It
// returns [ErrNoSymbol] if the symbol does not exist.
func Constant(r io.ReaderAt, name string, n uint64) ([]byte, error) {
	img, err := openLibrary(r)
	if err != nil {
		return nil, err
	}
	for i := range img.sections {
		s := &img.sections[i]
		if kind := elf.SectionType(s.Type); kind != elf.SHT_SYMTAB && kind != elf.SHT_DYNSYM {
			continue
		}
		names, err := img.linked(s)
		if err != nil {
			return nil, err
		}
		table, err := img.data(s, maxSymbols)
		if err != nil {
			return nil, err
		}
		if err := img.r.spend(len(table)/elf.Sym64Size, weighRecord); err != nil {
			return nil, err
		}
		if at, ok := valueOf(table, names, name); ok {
			return img.at(fmt.Sprintf("symbol %q", name), at, n, maxTable)
		}
	}
	return nil, ErrNoSymbol
}

// valueOf returns the address of a defined symbol in a table.
func valueOf(table []byte, names, name string) (uint64, bool) {
	for ; len(table) >= elf.Sym64Size; table = table[elf.Sym64Size:] {
		at := uint64(binary.LittleEndian.Uint32(table))
		defined := binary.LittleEndian.Uint16(table[6:]) != uint16(elf.SHN_UNDEF)
		if defined && at < uint64(len(names)) && strings.HasPrefix(names[at:], name+"\x00") {
			return binary.LittleEndian.Uint64(table[8:]), true
		}
	}
	return 0, false
}

// windowSize is the number of bytes of constants searched at a time. maxLibraryName is
// the longest library name found across the border of two windows.
const (
	windowSize     = 1 << 20
	maxLibraryName = 256
)

// LibraryNames returns the constant texts of a library with the form of a library file
// name, such as libnvrtc.so.13, sorted and without duplicates. The library may open
// these at run time. LibraryNames is faster than [Texts] for this purpose.
func LibraryNames(r io.ReaderAt) ([]string, error) {
	img, err := openSectioned(r)
	if err != nil {
		return nil, err
	}
	var found []string
	for i := range img.sections {
		s := &img.sections[i]
		if !constants(s.name) {
			continue
		}
		raw, err := img.open(s)
		if err != nil {
			return nil, err
		}
		if found, err = namesIn(raw, found); err != nil {
			return nil, fmt.Errorf("reading section %q: %w", s.name, err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

func namesIn(r io.Reader, found []string) ([]string, error) {
	window := make([]byte, 0, windowSize+2*maxLibraryName)
	for {
		n, err := io.ReadFull(r, window[len(window):len(window)+windowSize])
		window = window[:len(window)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return found, err
		}
		for at := 0; len(found) < maxTexts; {
			i := bytes.Index(window[at:], []byte(".so"))
			if i < 0 {
				break
			}
			at += i + len(".so")
			if name := nameAround(window, at); name != "" {
				found = append(found, name)
			}
		}
		if ended {
			return found, nil
		}
		window = window[:copy(window, window[len(window)-min(len(window), 2*maxLibraryName):])]
	}
}

// nameAround returns the text around the .so that ends at at. It returns "" if the text
// is incomplete or not the name of a library.
func nameAround(window []byte, at int) string {
	start, end := at, at
	for start > 0 && at-start <= maxLibraryName && window[start-1] > ' ' && window[start-1] <= '~' {
		start--
	}
	for end < len(window) && end-at <= maxLibraryName && window[end] > ' ' && window[end] <= '~' {
		end++
	}
	if end == len(window) || window[end] != 0 || start > 0 && window[start-1] == ' ' {
		return ""
	}
	name := string(window[start:end])
	if !strings.HasPrefix(name, "lib") || strings.Trim(name[at-start:], ".0123456789") != "" || strings.ContainsAny(name, "/%") {
		return ""
	}
	return name
}
