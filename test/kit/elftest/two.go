package elftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Two returns one file with two libraries: the loader runs the first, and the section
// table describes the second. If mapped is set, the file also loads the second after
// the first, to the addresses in its section table.
func Two(runs, shows Library, mapped bool) []byte {
	file, second := runs.Bytes(), shows.Bytes()
	file = append(file, make([]byte, -len(file)&(0x1000-1))...)
	shift := uint64(len(file))
	head, other := headerOf(file), headerOf(second)
	table := make([]elf.Section64, other.Shnum)
	mustDecode(second[other.Shoff:], table)
	for i := 1; i < len(table); i++ {
		table[i].Off += shift
		if mapped {
			table[i].Addr += shift
		}
	}
	copy(second[other.Shoff:], pack(table))
	if mapped { // replace the empty segment
		all := uint64(len(second))
		copy(file[head.Phoff+3*56:], pack(elf.Prog64{
			Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: shift, Vaddr: shift, Filesz: all, Memsz: all, Align: 0x1000,
		}))
	}
	head.Shoff, head.Shnum, head.Shstrndx = shift+other.Shoff, other.Shnum, other.Shstrndx
	copy(file, pack(head))
	return append(file, second...)
}

func headerOf(file []byte) (h elf.Header64) {
	mustDecode(file, &h)
	return h
}

func mustDecode(raw []byte, v any) {
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, v); err != nil {
		panic(err) // this package wrote raw
	}
}
