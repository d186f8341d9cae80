package elf

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
)

// The binding, the definition and the visibility of a symbol decide how the linker
// treats it.
func TestSymbolsByBinding(t *testing.T) {
	const names = "\x00add\x00"
	symbol := func(name uint32, bind elf.SymBind, visible elf.SymVis, section elf.SectionIndex) []byte {
		raw := binary.LittleEndian.AppendUint32(nil, name)
		raw = append(raw, elf.ST_INFO(bind, elf.STT_FUNC), byte(visible))
		return binary.LittleEndian.AppendUint16(raw, uint16(section))
	}
	d := &dynamic{image: &image{r: metered(strings.NewReader(""))}, names: names}
	add := Symbol{Name: "add"}
	for _, c := range []struct {
		name                string
		raw                 []byte
		undefined, exported []Symbol
	}{
		{"global", symbol(1, elf.STB_GLOBAL, elf.STV_DEFAULT, 7), nil, []Symbol{add}},
		{"protected", symbol(1, elf.STB_GLOBAL, elf.STV_PROTECTED, 7), nil, []Symbol{add}},
		{"hidden", symbol(1, elf.STB_GLOBAL, elf.STV_HIDDEN, 7), nil, nil},
		{"wanted", symbol(1, elf.STB_GLOBAL, elf.STV_DEFAULT, elf.SHN_UNDEF), []Symbol{add}, nil},
		{"wanted weakly", symbol(1, elf.STB_WEAK, elf.STV_DEFAULT, elf.SHN_UNDEF), []Symbol{{Name: "add", Weak: true}}, nil},
		{"unique", symbol(1, gnuUnique, elf.STV_DEFAULT, 7), nil, []Symbol{add}},
		{"local", symbol(1, elf.STB_LOCAL, elf.STV_DEFAULT, 7), nil, nil},
		{"without a name", symbol(0, elf.STB_GLOBAL, elf.STV_DEFAULT, 7), nil, nil},
	} {
		f := &File{}
		if err := f.addSymbol(d, c.raw, version{}); err != nil || !slices.Equal(f.Undefined, c.undefined) || !slices.Equal(f.Exported, c.exported) {
			t.Errorf("%s: wants %v, gives %v, %v", c.name, f.Undefined, f.Exported, err)
		}
	}
	err := new(File).addSymbol(d, symbol(99, elf.STB_GLOBAL, elf.STV_DEFAULT, 7), version{})
	check.That(t, err != nil, "a name outside of the table is none")
}

// A section may begin at offset 0 and may be empty. Its offset and its end must fit in
// an int64.
func TestPlacesOfSections(t *testing.T) {
	for _, c := range []struct {
		off, size uint64
		good      bool
	}{{0, 0, true}, {0, 8, true}, {8, 0, true}, {1 << 63, 8, false}, {8, 1 << 63, false}, {1<<64 - 4, 8, false}, {1 << 62, 1 << 62, false}, {1<<63 - 1, 0, true}} {
		s := &section{Section64: elf.Section64{Off: c.off, Size: c.size}}
		_, err := new(image).open(s)
		check.That(t, (err == nil) == c.good, "%d bytes at %d: %v", c.size, c.off, err)
	}
}
