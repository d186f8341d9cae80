// Package elf reads shared libraries for the gates: the libraries a file needs and
// their search paths, its undefined and exported symbols, the oldest library versions
// it runs with, and its GPU code.
//
// It reads 64-bit little-endian files, the only kind in Linux wheels. Input is
// untrusted: memory is bounded, and a contradiction is an error, never a partial
// result.
package elf

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
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

// Symbol is one dynamic symbol. For an undefined symbol with a version, Library is the
// library expected to define it.
type Symbol struct {
	Name    string
	Version string
	Library string
	Weak    bool
}

// Is reports whether a file begins like an ELF file. A file named like a library may be
// a linker script.
func Is(r io.ReaderAt) bool {
	magic := make([]byte, len(elf.ELFMAG))
	n, _ := r.ReadAt(magic, 0) // a shorter file is not ELF
	return string(magic[:n]) == elf.ELFMAG
}

// Read reads the dynamic linking information of a shared library from the program
// headers and the dynamic segment, as the loader does.
func Read(r io.ReaderAt) (*File, error) {
	img, err := openLibrary(r)
	if err != nil {
		return nil, err
	}
	d, err := readDynamic(img)
	if err != nil {
		return nil, err
	}
	if err := d.agree(); err != nil {
		return nil, err
	}
	f := &File{Floors: map[string]string{}}
	if err := f.readNames(d); err != nil {
		return nil, err
	}
	all, err := d.readVersions()
	if err != nil {
		return nil, err
	}
	f.setFloors(all.required)
	if err := f.readSymbols(d, all.of); err != nil {
		return nil, err
	}
	return f, nil
}

// machineName turns EM_X86_64 into x86_64.
func machineName(m elf.Machine) string {
	return strings.ToLower(strings.TrimPrefix(m.String(), "EM_"))
}

// readNames reads the names in the dynamic segment.
func (f *File) readNames(d *dynamic) error {
	for _, off := range d.needed {
		name, err := d.r.name(d.names, off)
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
		name, err := d.r.name(d.names, off)
		if err != nil {
			return fmt.Errorf("reading %v: %w", tag, err)
		}
		set(name)
	}
	return nil
}

func (f *File) readSymbols(d *dynamic, versions map[uint16]version) error {
	found, err := d.exports()
	if err != nil {
		return err
	}
	count, err := d.count(found)
	if err != nil {
		return err
	}
	data, err := d.at("dynamic symbols (DT_SYMTAB)", d.values[elf.DT_SYMTAB], uint64(count)*elf.Sym64Size, maxSymbols)
	if err != nil {
		return err
	}
	indexes, err := d.versionIndexes(count)
	if err != nil {
		return err
	}
	for i := 1; i < count; i++ { // symbol 0 is always empty
		given := len(f.Exported)
		if err := f.addSymbol(d, data[i*elf.Sym64Size:], versions[indexes.at(i)]); err != nil {
			return fmt.Errorf("reading symbol %d: %w", i, err)
		}
		if len(f.Exported) > given && !found.finds(f.Exported[given].Name, i) {
			return fmt.Errorf("the symbol table has %q, but the loader cannot find it by the hash table", f.Exported[given].Name)
		}
	}
	return nil
}

// gnuUnique is STB_GNU_UNIQUE: one definition per process, required by C++ for static
// members of templates.
const gnuUnique = elf.STB_LOOS

// heldSymbol is the memory of a symbol in a growing list, in bytes.
const heldSymbol = 128

func (f *File) addSymbol(d *dynamic, raw []byte, v version) error {
	nameOff, info, other := binary.LittleEndian.Uint32(raw), raw[4], raw[5]
	shndx := elf.SectionIndex(binary.LittleEndian.Uint16(raw[6:]))
	bind := elf.ST_BIND(info)
	if bind != elf.STB_GLOBAL && bind != elf.STB_WEAK && bind != gnuUnique {
		return nil
	}
	name, err := d.r.name(d.names, uint64(nameOff))
	if err != nil || name == "" {
		return err
	}
	if err := d.r.hold(heldSymbol); err != nil {
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

func (f *File) setFloors(required []version) {
	for _, v := range required {
		namespace, number, ok := splitVersion(v.name)
		if ok && CompareVersions(number, f.Floors[namespace]) > 0 {
			f.Floors[namespace] = number
		}
	}
}

// splitVersion splits GLIBCXX_3.4.32 into namespace and number. It returns false for
// versions without a number (GLIBC_PRIVATE, CXXABI_FLOAT128) and for other notations
// (OPENSSL_1_1_0). These set no floor.
func splitVersion(s string) (namespace, number string, ok bool) {
	i := strings.LastIndexByte(s, '_')
	if i <= 0 {
		return "", "", false
	}
	namespace, number = s[:i], s[i+1:]
	last := namespace[len(namespace)-1]
	return namespace, number, isNumber(number) && (last < '0' || last > '9' || !strings.Contains(namespace, "_"))
}

// isNumber reports whether s consists of numbers separated by single dots.
func isNumber(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

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
