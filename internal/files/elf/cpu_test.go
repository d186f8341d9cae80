package elf_test

import (
	"bytes"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
)

var (
	vxorps = []byte{0xc5, 0xf8, 0x57, 0xc0}
	vpxord = []byte{0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0}
)

func TestCPUUses(t *testing.T) {
	l := elftest.Library{Exported: []elftest.Symbol{
		{Name: "plain"},
		{Name: "b", Code: bytes.Repeat(vxorps, 3)},
		{Name: "a", Code: append(bytes.Clone(vpxord), vxorps...)},
	}}
	uses, err := elf.CPUUses(bytes.NewReader(l.Bytes()))
	must.Succeed(t, err)
	var got []string
	for _, u := range uses {
		got = append(got, string(u.Feature)+" "+u.Function)
	}
	check.Same(t, "uses", []string{"avx b", "avx a", "avx512 a"}, got)
	check.That(t, uses[1].First == uses[2].First+uint64(len(vpxord)), "the first places are wrong: %+v", uses)
}

func TestNoCPUUses(t *testing.T) {
	for _, c := range []struct {
		of   []byte
		says string
	}{
		{elftest.Library{Machine: "aarch64", Exported: elftest.Named("f")}.Bytes(), "for aarch64"},
		{elftest.Library{}.Bytes(), "it has no code"},
		{elftest.Library{Exported: []elftest.Symbol{{Name: "f", Code: []byte{0x06}}}}.Bytes(), `section ".text": at 0x`},
		{elftest.Library{Exported: []elftest.Symbol{{Name: "f", Code: append(bytes.Repeat([]byte{0x90}, 63), 0xe8)}}}.Bytes(), "truncated"},
		{[]byte("text"), "not an ELF file"},
	} {
		uses, err := elf.CPUUses(bytes.NewReader(c.of))
		check.That(t, err != nil && strings.Contains(err.Error(), c.says), "%s: got %v, %v", c.says, uses, err)
	}
}
