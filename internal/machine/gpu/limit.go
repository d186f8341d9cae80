package gpu

import (
	"regexp"
	"strings"
)

// links lists the bandwidth of all links of a GPU to other GPUs, in one direction, in
// GB/s. The first entry that matches a GPU's name applies.
//
// The values of NVIDIA are from its data sheets. xGMI is the number of links of one GPU
// (rocm.docs.amd.com, conceptual/gpu-arch) by the rate of a link, 16 bits wide: 25 GT/s up
// to gfx90a and 32 GT/s from gfx942 by the kernel (amdgpu_xgmi_early_init in
// drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c), and 23 and 38.4 GT/s by AMD's data sheets of
// MI100 and MI350.
var links = []struct {
	names *regexp.Regexp
	gbps  float64
}{
	{regexp.MustCompile(`MI35[05]`), 537.6},
	{regexp.MustCompile(`MI300A`), 384},
	{regexp.MustCompile(`MI3(00|08|25)`), 448},
	{regexp.MustCompile(`MI2[05]0`), 400},
	{regexp.MustCompile(`MI210`), 150},
	{regexp.MustCompile(`MI100`), 138},
	{regexp.MustCompile(`B[123]00`), 900}, // NVLink 5
	{regexp.MustCompile(`H100 (NVL|PCIe)`), 300},
	{regexp.MustCompile(`H[12]00|H20`), 450}, // NVLink 4
	{regexp.MustCompile(`A100`), 300},
	{regexp.MustCompile(`[AH]800`), 200},
	{regexp.MustCompile(`V100`), 150},
	{regexp.MustCompile(`A30`), 100},
	{regexp.MustCompile(`P100`), 80},
	{regexp.MustCompile(`A40`), 56.25},
	{regexp.MustCompile(`L40?|A10`), 32}, // PCIe 4 and 3
	{regexp.MustCompile(`T4`), 16},
}

// Limit returns an upper limit in GB/s for any collective between these GPUs: the
// bandwidth of one GPU's links to the others, both directions together. The bus
// bandwidth of a ring is limited by one direction. A reduction in the switch (NVLS) is
// somewhat faster. A value above the sum of both directions does not measure traffic.
// With several kinds of GPUs, the fastest counts. known is false for unlisted names,
// and for partitions of one GPU, which communicate inside it. The limit is then that of
// the fastest listed GPU.
func Limit(gpus []GPU) (limit float64, known bool) {
	known = len(gpus) > 0 && !partitioned(gpus)
	for _, g := range gpus {
		gbps := linksOf(g.Name)
		limit, known = max(limit, gbps), known && gbps > 0
	}
	if !known {
		for _, l := range links {
			limit = max(limit, l.gbps)
		}
	}
	return 2 * limit, known
}

// linksOf returns the bandwidth of the links of a GPU with this name, or 0 if no entry
// matches.
func linksOf(name string) float64 {
	for _, l := range links {
		if l.names.MatchString(name) {
			return l.gbps
		}
	}
	return 0
}

// partitioned reports whether two of the GPUs are parts of one device. In CPX or DPX
// mode they are functions of one PCI device.
func partitioned(gpus []GPU) bool {
	seen := map[string]bool{}
	for _, g := range gpus {
		device, function, ok := strings.Cut(busID(g.BusID), ".")
		if !ok {
			continue
		}
		if seen[device] && function != "" {
			return true
		}
		seen[device] = true
	}
	return false
}
