package gpu

import "strings"

// switched lists the total bandwidth of a GPU's links to other GPUs, in one direction,
// in GB/s, from the vendors' data sheets. A switch or a bus connects these GPUs, so two
// of them have the whole bandwidth between them. The first entry contained in a GPU's
// name applies.
var switched = []struct {
	part string
	all  float64
}{
	{"GB300", 900},
	{"GB200", 900},
	{"B300", 900},
	{"B200", 900},
	{"B100", 900}, // NVLink 5
	{"GH200", 450},
	{"H200 NVL", 450},
	{"H100 NVL", 300},
	{"H100 PCIe", 300},
	{"H200", 450},
	{"H100", 450},
	{"H20", 450},
	{"H800", 200}, // NVLink 4
	{"A100", 300},
	{"A800", 200},
	{"A40", 56.25},
	{"A30", 100},
	{"V100", 150},
	{"P100", 80},
	{"L40", 32},
	{"L4", 32},
	{"A10", 32},
	{"T4", 16}, // PCIe 4 and 3
}

// An xgmi describes AMD GPUs with direct links and no switch. Fewer GPUs have fewer
// links between them.
type xgmi struct {
	part string
	link float64 // one link in one direction, GB/s
	pair int     // most links between two GPUs
	all  int     // links of one GPU
}

// meshed lists AMD GPUs with xGMI links, each 16 bits wide. If no source gives the
// number of links between two GPUs, pair is the number of all links.
//
// The kernel gives the rate (amdgpu_xgmi_early_init in
// drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c): 25 GT/s up to gfx90a, and 32 GT/s from
// gfx942. AMD's data sheets give other rates for MI100 and MI350: 23 and 38.4 GT/s. AMD's
// architecture pages give the number of links (rocm.docs.amd.com, conceptual/gpu-arch).
// An MI250 appears as two GPUs, one for each die, with four links between them
// (/sys/class/drm/card*/device/xgmi_num_links in ROCm/rocm-systems#5763).
var meshed = []xgmi{
	{"MI355", 76.8, 1, 7},
	{"MI350", 76.8, 1, 7},
	{"MI325", 64, 1, 7},
	{"MI300A", 64, 6, 6},
	{"MI308", 64, 1, 7},
	{"MI300", 64, 1, 7},
	{"MI250", 50, 4, 8},
	{"MI210", 50, 3, 3},
	{"MI200", 50, 4, 8},
	{"MI100", 46, 3, 3},
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
		each, listed := carried(g.Name, len(gpus)-1)
		limit, known = max(limit, each), known && listed
	}
	if !known {
		limit = fastest()
	}
	return 2 * limit, known
}

// carried returns the bandwidth of the links from a GPU with this name to a number of
// other GPUs, in one direction.
func carried(name string, others int) (gbps float64, listed bool) {
	for _, m := range meshed {
		if strings.Contains(name, m.part) {
			return m.link * float64(min(m.pair*max(others, 1), m.all)), true
		}
	}
	for _, s := range switched {
		if strings.Contains(name, s.part) {
			return s.all, true
		}
	}
	return 0, false
}

func fastest() float64 {
	best := 0.0
	for _, s := range switched {
		best = max(best, s.all)
	}
	for _, m := range meshed {
		best = max(best, m.link*float64(m.all))
	}
	return best
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
