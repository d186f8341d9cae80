package elftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// pack encodes values one after the other, little-endian.
func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if s, ok := v.(string); ok {
			v = []byte(s)
		}
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // a value without a fixed size
		}
	}
	return b.Bytes()
}

// table is a growing string table.
type table []byte

// add appends a name and returns its offset.
func (t *table) add(name string) uint32 {
	at := len(*t)
	*t = append(append(*t, name...), 0)
	return uint32(at)
}

// writer lays out sections after a header. A loadable file has room for segments, and
// the address of a section equals its offset.
type writer struct {
	header   elf.Header64
	segments []elf.Prog64
	body     []byte
	sections []elf.Section64
	names    table
}

const align = 16

func newWriter(machine elf.Machine, segments int) *writer {
	w := &writer{sections: []elf.Section64{{}}, names: table{0}, segments: make([]elf.Prog64, segments)}
	h := &w.header
	*h = elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Ehsize: 64, Shentsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	if segments > 0 {
		h.Phoff, h.Phentsize, h.Phnum = 64, 56, uint16(segments)
	}
	w.body = make([]byte, 64+56*segments)
	w.pad()
	return w
}

// pad aligns the start of the next section.
func (w *writer) pad() { w.body = append(w.body, make([]byte, -len(w.body)&(align-1))...) }

// add appends a section and returns its index.
func (w *writer) add(name string, s elf.Section64, data []byte) uint32 {
	w.pad()
	s.Name, s.Off, s.Size = w.names.add(name), uint64(len(w.body)), uint64(len(data))
	if len(w.segments) > 0 {
		s.Addr, s.Flags, s.Addralign = s.Off, s.Flags|uint64(elf.SHF_ALLOC), align
	}
	w.body = append(w.body, data...)
	w.sections = append(w.sections, s)
	return uint32(len(w.sections) - 1)
}

// bytes returns the file. The section table comes last.
func (w *writer) bytes() []byte {
	names := string(w.names) + ".shstrtab\x00"
	w.header.Shstrndx = uint16(w.add(".shstrtab", elf.Section64{Type: uint32(elf.SHT_STRTAB)}, []byte(names)))
	w.header.Shnum, w.header.Shoff = uint16(len(w.sections)), uint64(len(w.body))
	copy(w.body, pack(w.header, w.segments))
	return append(w.body, pack(w.sections)...)
}
