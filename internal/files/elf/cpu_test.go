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
	uses := must.Get(elf.CPUUses(bytes.NewReader(l.Bytes())))(t)
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

func TestArchitectureOfAProduct(t *testing.T) {
	for name, want := range map[string]string{
		"mi300x": "gfx942", "MI300A": "gfx942", "AMD Instinct MI250X": "gfx90a", "mi250": "gfx90a", "mi210": "gfx90a", "MI-100": "gfx908",
		"a100": "sm_80", "NVIDIA A100-SXM4-80GB": "sm_80", "H100 PCIe": "sm_90", "h200": "sm_90", "GH200": "sm_90", "b200": "sm_100",
		"rtx 4090": "sm_89", "RTX_4090": "sm_89", "GeForce RTX 4090": "sm_89", "rx 7900 xtx": "gfx1100", "radeon vii": "gfx906",
		"gfx942": "", "sm_90": "", "": "", "5.7": "", "nvidia": "", "80gb": "",
	} {
		check.Same(t, name, want, elf.Architecture(name))
	}
}
