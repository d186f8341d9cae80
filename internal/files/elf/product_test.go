package elf_test

import (
	"testing"

	"builder/internal/files/elf"
	"builder/test/kit/check"
)

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
