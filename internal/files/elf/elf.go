// Package elf reads shared libraries for the gates: the libraries a file needs and
// their search paths, its undefined and exported symbols, the oldest library versions
// it runs with, and its GPU code.
//
// It reads 64-bit little-endian files, the only kind in Linux wheels, with debug/elf.
// Input is untrusted: a child process with limits of time and memory reads it, and a
// contradiction is an error, never a partial result.
package elf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// File holds the contents of the dynamic segment and the dynamic symbols of a library.
type File struct {
	Soname    string
	Needed    []string // DT_NEEDED, in order
	Runpath   []string // directories in DT_RUNPATH
	Rpath     []string // directories in DT_RPATH
	Undefined []Symbol
	Exported  []Symbol
	// Floors holds the highest required version per namespace, such as "GLIBC": "2.38".
	// It leaves out versions without a number, such as GLIBC_PRIVATE.
	Floors map[string]string
}

// Symbol is one dynamic symbol.
type Symbol struct {
	Name    string
	Version string
	Weak    bool
}

// Is reports whether a file begins like an ELF file. A file named like a library may be
// a linker script.
func Is(r io.ReaderAt) bool {
	magic := make([]byte, len(elf.ELFMAG))
	n, _ := r.ReadAt(magic, 0) // a shorter file is not ELF
	return string(magic[:n]) == elf.ELFMAG
}

// description is what a child process says of a library.
type description struct {
	File  File
	Texts []textSection
}

// Read reads the dynamic linking information of a shared library. It returns an error if
// the section table shows other information than the loader reads.
func Read(r io.ReaderAt) (*File, error) {
	known, err := read(r)
	if err != nil {
		return nil, err
	}
	return &known.File, nil
}

// read asks a child process once for each library.
func read(r io.ReaderAt) (description, error) {
	b := budgeted(r)
	if known, ok := b.budget.known[b.ReaderAt]; ok {
		return known, nil
	}
	known, err := ask[description](b, "describe")
	if err == nil {
		b.budget.known[b.ReaderAt] = known
	}
	return known, err
}

// describe is the work of a child.
func describe(r io.ReaderAt) (known description, err error) {
	img, err := openImage(r)
	if err != nil {
		return known, err
	}
	d, err := img.readDynamic()
	if err != nil {
		return known, err
	}
	f := &known.File
	if err := f.readNames(d); err != nil {
		return known, err
	}
	if err := f.setFloors(d); err != nil {
		return known, err
	}
	for _, s := range img.file.Sections {
		if s.Type != elf.SHT_NOBITS && (constants(s.Name) || slices.Contains(debugging, s.Name)) {
			known.Texts = append(known.Texts, textSection{s.Name, int64(s.Offset), int64(s.FileSize), s.Flags&elf.SHF_COMPRESSED != 0})
		}
	}
	return known, f.addSymbols(d.symbols)
}

// readNames reads the names in the dynamic segment.
func (f *File) readNames(d *dynamic) error {
	for _, off := range d.needed {
		name, err := d.name(off)
		if err != nil {
			return fmt.Errorf("reading %v: %w", elf.DT_NEEDED, err)
		}
		f.Needed = append(f.Needed, name)
	}
	for tag, set := range map[elf.DynTag]func(string){
		elf.DT_SONAME:  func(name string) { f.Soname = name },
		elf.DT_RPATH:   func(name string) { f.Rpath = strings.Split(name, ":") },
		elf.DT_RUNPATH: func(name string) { f.Runpath = strings.Split(name, ":") },
	} {
		off, ok := d.values[tag]
		if !ok {
			continue
		}
		name, err := d.name(off)
		if err != nil {
			return fmt.Errorf("reading %v: %w", tag, err)
		}
		set(name)
	}
	return nil
}

// machineName turns EM_X86_64 into x86_64.
func machineName(m elf.Machine) string {
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

// gnuUnique is STB_GNU_UNIQUE: one definition per process, required by C++ for static
// members of templates.
const gnuUnique = elf.STB_LOOS

func (f *File) addSymbols(symbols []elf.Symbol) error {
	for i, s := range symbols {
		bind := elf.ST_BIND(s.Info)
		if bind != elf.STB_GLOBAL && bind != elf.STB_WEAK && bind != gnuUnique {
			continue
		}
		if s.Name == "" {
			return fmt.Errorf("symbol %d has no name in the table of names", i+1)
		}
		symbol := Symbol{Name: s.Name, Version: s.Version, Weak: bind == elf.STB_WEAK}
		switch visible := elf.ST_VISIBILITY(s.Other); {
		case s.Section == elf.SHN_UNDEF:
			f.Undefined = append(f.Undefined, symbol)
		case visible == elf.STV_DEFAULT, visible == elf.STV_PROTECTED:
			f.Exported = append(f.Exported, symbol)
		}
	}
	return nil
}

// setFloors reads the versions that the loader requires of other libraries, including those
// without a symbol.
func (f *File) setFloors(d *dynamic) error {
	f.Floors = map[string]string{}
	if d.sections[elf.SHT_GNU_VERNEED] == nil {
		return nil
	}
	needed, err := d.file.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("reading the required versions: %w", err)
	}
	for _, library := range needed {
		for _, v := range library.Needs {
			if m := numbered.FindStringSubmatch(v.Dep); m != nil {
				f.raise(m[1], m[2])
			} else if v.Dep == "GLIBC_ABI_DT_RELR" {
				f.raise("GLIBC", packedRelocations)
			}
		}
	}
	return nil
}

// packedRelocations is the first glibc that applies those of DT_RELR. The linker demands it
// by a version, without which no later one loads the library.
const packedRelocations = "2.36"

func (f *File) raise(namespace, version string) {
	if CompareVersions(version, f.Floors[namespace]) > 0 {
		f.Floors[namespace] = version
	}
}

// numbered matches GLIBCXX_3.4.32: a namespace and a number. It does not match versions
// without a number (GLIBC_PRIVATE, CXXABI_FLOAT128) and other notations (OPENSSL_1_1_0),
// which set no floor.
var numbered = regexp.MustCompile(`^(.*[^0-9]|[^_]+)_([0-9]+(?:\.[0-9]+)*)$`)

// CompareVersions compares two versions such as 2.9 and 2.38, number by number. The
// numbers may have any length. The empty version sorts first.
func CompareVersions(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Header holds the first fields of an ELF file, for any machine.
type Header struct {
	Machine string // as in platform tags: x86_64, aarch64; also cuda and amdgpu for GPU code
	System  string // such as ELFOSABI_FREEBSD; "" for files Linux loads
}

// ReadHeader reads the header of a file. It returns false if r is not an ELF file.
func ReadHeader(r io.ReaderAt) (Header, bool) {
	b := make([]byte, 20)
	if n, _ := r.ReadAt(b, 0); n < len(b) || string(b[:4]) != elf.ELFMAG { // a shorter file is not ELF
		return Header{}, false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(b[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	h := Header{Machine: machineName(elf.Machine(order.Uint16(b[18:])))}
	if abi := elf.OSABI(b[elf.EI_OSABI]); abi != elf.ELFOSABI_NONE && abi != elf.ELFOSABI_LINUX {
		h.System = abi.String()
	}
	return h, true
}
