// Package elf answers what gates ask of a shared library: what it needs and
// from where, which symbols it wants and gives, the oldest libraries that it
// runs with, and the GPU code inside.
//
// It reads 64-bit little-endian files, which is what Linux wheels hold. The
// bytes are not trusted: memory is bounded, and what contradicts itself is an
// error, never a shorter answer.
package elf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// File is what the dynamic section and the dynamic symbols of a library say.
type File struct {
	Soname    string
	Needed    []string // DT_NEEDED, in order
	Runpath   []string // directories of DT_RUNPATH
	Rpath     []string // directories of DT_RPATH
	Undefined []Symbol
	Exported  []Symbol
	// Floors holds the highest version required per namespace, such as
	// "GLIBC": "2.38". Versions that are not numbers, as GLIBC_PRIVATE, are not
	// in it.
	Floors  map[string]string
	Machine string // as platform tags write it: x86_64, aarch64
}

// Symbol is one dynamic symbol. Library is the library that an undefined symbol
// is expected in, where its version says so.
type Symbol struct {
	Name    string
	Version string
	Library string
	Weak    bool
}

// Is reports whether a file begins as an ELF file does: what is called like a
// library may be a linker script.
func Is(r io.ReaderAt) bool {
	magic := make([]byte, len(elf.ELFMAG))
	n, _ := r.ReadAt(magic, 0) // a shorter file is none
	return string(magic[:n]) == elf.ELFMAG
}

// Read reads the dynamic linking information of a shared library.
func Read(r io.ReaderAt) (*File, error) {
	img, err := openImage(r)
	if err != nil {
		return nil, err
	}
	f := &File{Machine: machineName(img.machine), Floors: map[string]string{}}
	if err := f.readDynamic(img); err != nil {
		return nil, err
	}
	versions, err := readVersions(img)
	if err != nil {
		return nil, err
	}
	f.setFloors(versions)
	if err := f.readSymbols(img, versions); err != nil {
		return nil, err
	}
	return f, nil
}

// machineName turns EM_X86_64 into x86_64.
func machineName(m elf.Machine) string {
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

func (f *File) readDynamic(img *image) error {
	s := img.byType(elf.SHT_DYNAMIC)
	if s == nil {
		return errors.New("not a shared library: no dynamic section")
	}
	data, err := img.data(s, maxTable)
	if err != nil {
		return err
	}
	names, err := img.linked(s)
	if err != nil {
		return err
	}
	for ; len(data) >= 16; data = data[16:] {
		tag, value := elf.DynTag(binary.LittleEndian.Uint64(data)), binary.LittleEndian.Uint64(data[8:])
		if tag == elf.DT_NULL {
			break
		}
		if err := f.addDynamic(tag, value, names); err != nil {
			return fmt.Errorf("reading %v: %w", tag, err)
		}
	}
	return nil
}

func (f *File) addDynamic(tag elf.DynTag, value uint64, names string) error {
	switch tag {
	case elf.DT_SONAME, elf.DT_NEEDED, elf.DT_RUNPATH, elf.DT_RPATH:
	default:
		return nil
	}
	name, err := nameAt(names, value)
	if err != nil {
		return err
	}
	switch tag {
	case elf.DT_SONAME:
		f.Soname = name
	case elf.DT_NEEDED:
		f.Needed = append(f.Needed, name)
	case elf.DT_RUNPATH:
		f.Runpath = append(f.Runpath, strings.Split(name, ":")...)
	case elf.DT_RPATH:
		f.Rpath = append(f.Rpath, strings.Split(name, ":")...)
	}
	return nil
}

func (f *File) readSymbols(img *image, versions map[uint16]version) error {
	s := img.byType(elf.SHT_DYNSYM)
	if s == nil {
		return nil
	}
	data, err := img.data(s, maxSymbols)
	if err != nil {
		return err
	}
	names, err := img.linked(s)
	if err != nil {
		return err
	}
	indexes, err := versionIndexes(img)
	if err != nil {
		return err
	}
	for i := 1; (i+1)*elf.Sym64Size <= len(data); i++ { // symbol 0 is always empty
		if err := f.addSymbol(data[i*elf.Sym64Size:], names, versions[indexes.at(i)]); err != nil {
			return fmt.Errorf("reading symbol %d: %w", i, err)
		}
	}
	return nil
}

// gnuUnique is STB_GNU_UNIQUE: one definition in the process, as C++ wants for
// static members of templates.
const gnuUnique = elf.STB_LOOS

func (f *File) addSymbol(raw []byte, names string, v version) error {
	nameOff, info, other := binary.LittleEndian.Uint32(raw), raw[4], raw[5]
	shndx := elf.SectionIndex(binary.LittleEndian.Uint16(raw[6:]))
	bind := elf.ST_BIND(info)
	if bind != elf.STB_GLOBAL && bind != elf.STB_WEAK && bind != gnuUnique {
		return nil
	}
	name, err := nameAt(names, uint64(nameOff))
	if err != nil || name == "" {
		return err
	}
	symbol := Symbol{Name: name, Version: v.name, Library: v.library, Weak: bind == elf.STB_WEAK}
	switch visible := elf.ST_VISIBILITY(other); {
	case shndx == elf.SHN_UNDEF:
		f.Undefined = append(f.Undefined, symbol)
	case visible == elf.STV_DEFAULT, visible == elf.STV_PROTECTED:
		f.Exported = append(f.Exported, symbol)
	}
	return nil
}

func (f *File) setFloors(versions map[uint16]version) {
	for _, v := range versions {
		namespace, number, ok := splitVersion(v.name)
		if v.library != "" && ok && CompareVersions(number, f.Floors[namespace]) > 0 {
			f.Floors[namespace] = number
		}
	}
}

// splitVersion splits GLIBCXX_3.4.32 into namespace and number. What has no
// number (GLIBC_PRIVATE, CXXABI_FLOAT128) or writes it otherwise (OPENSSL_1_1_0)
// sets no floor.
func splitVersion(s string) (namespace, number string, ok bool) {
	i := strings.LastIndexByte(s, '_')
	if i <= 0 {
		return "", "", false
	}
	namespace, number = s[:i], s[i+1:]
	last := namespace[len(namespace)-1]
	return namespace, number, isNumber(number) && (last < '0' || last > '9' || !strings.Contains(namespace, "_"))
}

// isNumber reports whether s is numbers between single dots.
func isNumber(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// CompareVersions compares two versions such as 2.9 and 2.38 number by number,
// of any length. The empty version is less than every other.
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
