package elftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

// dynamic writes the tables for the dynamic linker. Call finish last: only then are all
// positions known.
type dynamic struct {
	w     *writer
	names table // .dynstr
	tags  []elf.Dyn64

	syms     []elf.Sym64
	indexes  []uint16 // the version number of each symbol
	versions []version
	last     elf.Prog64 // the last segment, empty or with a note
}

// version is a version of another library, or of this library if library is "". Its
// number is its index plus firstVersion.
type version struct{ library, name string }

// firstVersion follows the numbers for no version (0) and for the library itself (1).
const firstVersion = 2

func (d *dynamic) tag(tag elf.DynTag, value uint64) {
	d.tags = append(d.tags, elf.Dyn64{Tag: int64(tag), Val: value})
}

// name adds a tag with a string as its value, unless the string is empty.
func (d *dynamic) name(tag elf.DynTag, text string) {
	if text != "" {
		d.tag(tag, uint64(d.names.add(text)))
	}
}

func (d *dynamic) texts(texts []string) {
	if len(texts) > 0 {
		d.w.add(".rodata", elf.Section64{Type: uint32(elf.SHT_PROGBITS)}, []byte("\x00"+strings.Join(texts, "\x00")+"\x00"))
	}
}

// level adds the note by which a linker demands a level of x86-64.
func (d *dynamic) level(level int) {
	if level == 0 {
		return
	}
	note := pack(uint32(4), uint32(16), uint32(5), "GNU\x00", uint32(0xc0008002), uint32(4), uint32(1)<<(level-1), uint32(0))
	s := d.w.sections[d.w.add(".note.gnu.property", elf.Section64{Type: uint32(elf.SHT_NOTE)}, note)]
	d.last = elf.Prog64{Type: uint32(elf.PT_GNU_PROPERTY), Flags: uint32(elf.PF_R), Off: s.Off, Vaddr: s.Addr, Filesz: s.Size, Memsz: s.Size, Align: 8}
}

// returnZero is the machine code of a function that returns 0.
var returnZero = []byte{0x31, 0xc0, 0xc3}

// nop is the padding between functions.
const nop = 0x90

// symbols adds the symbols and writes the code of the exported ones.
func (d *dynamic) symbols(undefined, exported []Symbol) {
	d.syms, d.indexes = make([]elf.Sym64, 1), make([]uint16, 1)
	var code []byte
	for _, s := range undefined {
		d.symbol(s, elf.Sym64{})
	}
	for _, s := range exported {
		if s.Code == nil {
			s.Code = returnZero
		}
		at := len(d.w.body) + len(code) // .text comes first
		code = append(append(code, s.Code...), bytes.Repeat([]byte{nop}, -len(s.Code)&(align-1))...)
		s.Library = ""
		d.symbol(s, elf.Sym64{Shndx: 1, Value: uint64(at), Size: uint64(len(s.Code))})
	}
	d.w.add(".text", elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)}, code)
}

func (d *dynamic) symbol(s Symbol, sym elf.Sym64) {
	bind := elf.STB_GLOBAL
	if s.Weak {
		bind = elf.STB_WEAK
	}
	sym.Name, sym.Info = d.names.add(s.Name), elf.ST_INFO(bind, elf.STT_FUNC)
	d.syms = append(d.syms, sym)
	index := uint16(1)
	if s.Version != "" {
		v := version{s.Library, s.Version}
		if !slices.Contains(d.versions, v) {
			d.versions = append(d.versions, v)
		}
		index = uint16(slices.Index(d.versions, v) + firstVersion)
	}
	d.indexes = append(d.indexes, index)
}

// relocations adds the table of relocations.
func (d *dynamic) relocations(l Library) {
	if len(l.Relocations) == 0 {
		return
	}
	index := func(name string) int {
		return 1 + slices.IndexFunc(slices.Concat(l.Undefined, l.Exported), func(s Symbol) bool { return s.Name == name })
	}
	var all []elf.Rela64
	for _, r := range l.Relocations {
		all = append(all, elf.Rela64{
			Off: d.syms[index(r.Function)].Value, Info: elf.R_INFO(uint32(index(r.Symbol)), uint32(elf.R_X86_64_64)),
			Addend: int64(binary.LittleEndian.Uint64(r.Code[:])),
		})
	}
	at := d.w.add(".rela.dyn", elf.Section64{Type: uint32(elf.SHT_RELA), Entsize: 24}, pack(all))
	d.tag(elf.DT_RELA, d.w.sections[at].Addr)
	d.tag(elf.DT_RELASZ, uint64(24*len(all)))
	d.tag(elf.DT_RELAENT, 24)
	d.tag(elf.DT_TEXTREL, 0) // the loader makes the segment writable while it relocates
}

// finish writes the tables and the segments.
func (d *dynamic) finish(soname string) []byte {
	needs, libraries := d.needs()
	gives, count := d.definitions(soname)
	w := d.w
	names := w.add(".dynstr", elf.Section64{Type: uint32(elf.SHT_STRTAB)}, d.names)
	syms := w.add(".dynsym", elf.Section64{Type: uint32(elf.SHT_DYNSYM), Link: names, Info: 1, Entsize: elf.Sym64Size}, pack(d.syms))
	hash := w.add(".hash", elf.Section64{Type: uint32(elf.SHT_HASH), Link: syms, Entsize: 4}, d.hash())
	d.tag(elf.DT_STRTAB, w.sections[names].Addr)
	d.tag(elf.DT_SYMTAB, w.sections[syms].Addr)
	d.tag(elf.DT_HASH, w.sections[hash].Addr)
	d.tag(elf.DT_STRSZ, uint64(len(d.names)))
	d.tag(elf.DT_SYMENT, elf.Sym64Size)
	if len(d.versions) > 0 {
		at := w.add(".gnu.version", elf.Section64{Type: uint32(elf.SHT_GNU_VERSYM), Link: syms, Entsize: 2}, pack(d.indexes))
		d.tag(elf.DT_VERSYM, w.sections[at].Addr)
	}
	if libraries > 0 {
		at := w.add(".gnu.version_r", elf.Section64{Type: uint32(elf.SHT_GNU_VERNEED), Link: names, Info: uint32(libraries)}, needs)
		d.tag(elf.DT_VERNEED, w.sections[at].Addr)
		d.tag(elf.DT_VERNEEDNUM, uint64(libraries))
	}
	if count > 0 {
		at := w.add(".gnu.version_d", elf.Section64{Type: uint32(elf.SHT_GNU_VERDEF), Link: names, Info: uint32(count)}, gives)
		d.tag(elf.DT_VERDEF, w.sections[at].Addr)
		d.tag(elf.DT_VERDEFNUM, uint64(count))
	}
	d.tag(elf.DT_NULL, 0)
	at := w.add(".dynamic", elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Link: names, Entsize: 16}, pack(d.tags))
	d.segments(w.sections[at])
	return w.bytes()
}

// segments loads the whole file as one segment. Nothing writes to it: since glibc 2.35 the
// loader leaves a read-only dynamic segment as it is. Without PT_GNU_STACK the loader would
// request an executable stack, which glibc 2.41 refuses. [Two] replaces the empty segment.
func (d *dynamic) segments(table elf.Section64) {
	all := uint64(len(d.w.body))
	d.w.segments = []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: all, Memsz: all, Align: 0x1000},
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R), Off: table.Off, Vaddr: table.Addr, Filesz: table.Size, Memsz: table.Size, Align: 8},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
		d.last,
	}
}

// hash returns the hash table of the symbols, with one bucket for all.
func (d *dynamic) hash() []byte {
	chain := make([]uint32, len(d.syms)) // each symbol links to the next, the last to 0
	for i := 1; i+1 < len(chain); i++ {
		chain[i] = uint32(i + 1)
	}
	first := uint32(min(1, len(d.syms)-1))
	return pack(uint32(1), uint32(len(d.syms)), first, chain)
}

// needs returns the table of versions required of other libraries, and the number of
// those libraries.
func (d *dynamic) needs() (table []byte, libraries int) {
	var order []string
	for _, v := range d.versions {
		if v.library != "" && !slices.Contains(order, v.library) {
			order = append(order, v.library)
		}
	}
	for i, library := range order {
		var entries [][]byte
		for j, v := range d.versions {
			if v.library == library {
				entries = append(entries, pack(versionHash(v.name), uint16(0), uint16(j+firstVersion), d.names.add(v.name)))
			}
		}
		size := uint32(16 + 16*len(entries))
		table = append(table, pack(uint16(1), uint16(len(entries)), d.names.add(library), uint32(16), next(i, len(order), size))...)
		for j, e := range entries {
			table = append(table, append(e, pack(next(j, len(entries), 16))...)...)
		}
	}
	return table, len(order)
}

// definitions returns the table of versions defined by this library. Its first entry is
// the library itself.
func (d *dynamic) definitions(soname string) (table []byte, count int) {
	type definition struct {
		flags, index uint16
		name         string
	}
	all := []definition{{1, 1, soname}}
	for i, v := range d.versions {
		if v.library == "" {
			all = append(all, definition{0, uint16(i + firstVersion), v.name})
		}
	}
	if len(all) == 1 {
		return nil, 0
	}
	for i, v := range all {
		table = append(table, pack(uint16(1), v.flags, v.index, uint16(1), versionHash(v.name), uint32(20), next(i, len(all), 28))...)
		table = append(table, pack(d.names.add(v.name), uint32(0))...)
	}
	return table, len(all)
}

// next returns the distance to the next record, or 0 for the last record.
func next(i, count int, size uint32) uint32 {
	if i == count-1 {
		return 0
	}
	return size
}

// versionHash is the hash function of the System V ABI.
func versionHash(name string) uint32 {
	var h uint32
	for _, c := range []byte(name) {
		h = h<<4 + uint32(c)
		h ^= h & 0xf0000000 >> 24
	}
	return h & 0x0fffffff
}
