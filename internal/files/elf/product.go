package elf

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// products maps the product name of a GPU, as normalized by [Architecture], to the
// architecture of its code. AMD's names come from its system requirements for ROCm, and
// NVIDIA's from its list of compute capabilities.
var products = map[string]string{
	"mi50": "gfx906", "mi60": "gfx906", "vii": "gfx906", "mi100": "gfx908",
	"mi200": "gfx90a", "mi210": "gfx90a", "mi250": "gfx90a", "mi250x": "gfx90a",
	"mi300": "gfx942", "mi300a": "gfx942", "mi300x": "gfx942", "mi308x": "gfx942", "mi325": "gfx942", "mi325x": "gfx942",
	"mi350": "gfx950", "mi350x": "gfx950", "mi355": "gfx950", "mi355x": "gfx950",
	"6800xt": "gfx1030", "6900xt": "gfx1030", "w6800": "gfx1030",
	"7900xtx": "gfx1100", "7900xt": "gfx1100", "7900gre": "gfx1100", "w7900": "gfx1100", "w7800": "gfx1100", "7800xt": "gfx1101", "w7700": "gfx1101",
	"9070": "gfx1201", "9070xt": "gfx1201", "9060xt": "gfx1200",

	"p100": "sm_60", "p40": "sm_61", "v100": "sm_70", "t4": "sm_75", "2080ti": "sm_75",
	"a100": "sm_80", "a800": "sm_80", "a30": "sm_80",
	"a10": "sm_86", "a10g": "sm_86", "a40": "sm_86", "a6000": "sm_86", "3090": "sm_86", "3090ti": "sm_86", "3080": "sm_86",
	"l4": "sm_89", "l40": "sm_89", "l40s": "sm_89", "4090": "sm_89", "4080": "sm_89", "6000ada": "sm_89",
	"h100": "sm_90", "h200": "sm_90", "h800": "sm_90", "h20": "sm_90", "gh200": "sm_90",
	"b100": "sm_100", "b200": "sm_100", "gb200": "sm_100", "b300": "sm_103", "gb300": "sm_103",
	"5090": "sm_120", "5080": "sm_120",
}

var (
	makers = regexp.MustCompile(`^(nvidia|amd|instinct|tesla|geforce|quadro|radeon(pro)?|rtx|gtx|rx)+`)
	forms  = regexp.MustCompile(`(sxm\d?|pcie|nvl|oam|\d+gb|superchip)+$`)
)

// Architecture returns the code architecture of a GPU by its product name: gfx942 for
// MI300X and AMD Instinct MI300X, sm_90 for H200. It returns "" for other names.
func Architecture(name string) string {
	name = strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
	return products[forms.ReplaceAllString(makers.ReplaceAllString(name, ""), "")]
}

// IsArchitecture reports whether a GPU of the table runs code for arch, such as gfx906.
func IsArchitecture(arch string) bool {
	return slices.Contains(slices.Collect(maps.Values(products)), arch)
}
