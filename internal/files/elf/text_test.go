package elf

import (
	"bytes"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestEachText(t *testing.T) {
	long := strings.Repeat("x", maxName+10)
	file := library(
		part{".text", []byte("not a constant")},
		part{".rodata", []byte("\x01NCCL version 2\x00short\x00~sixth\x00two words\nnext line\x00\xffat the end")},
		part{".rodata.str1.1", []byte(long + "\x00")},
	)
	var got []string
	must.Succeed(t, EachText(bytes.NewReader(file), func(s string) { got = append(got, s) }))
	want := []string{"NCCL version 2", "~sixth", "two words", "next line", "at the end", long[:maxName]}
	check.Same(t, "texts", want, got)
	file, got = library(part{".rodata", []byte("a constant\x00")}, part{".debug_line_str", []byte("/home/me/src\x00")}, part{".comment", []byte("GCC: (Debian)\x00")}), nil
	must.Succeed(t, EachSourceText(bytes.NewReader(file), func(s string) { got = append(got, s) }))
	check.Same(t, "texts for debuggers", []string{"a constant", "/home/me/src", "GCC: (Debian)"}, got)
}

func TestEachTextOfWhatIsNotThere(t *testing.T) {
	file := library(part{".rodata", []byte("some text")})
	err := EachText(strings.NewReader("text"), func(string) {})
	check.That(t, err != nil, "a text passes for a library")
	// The section is edited to extend past the end of the file. 0x28 is the offset of
	// the section table in the file header, 1 the index of the section, and 32 the
	// offset of the size in a section header.
	at := int(file[0x28]) | int(file[0x29])<<8
	file[at+64+32+2] = 1
	check.Fails(t, EachText(bytes.NewReader(file), func(string) {}), "no segment loads")
}
