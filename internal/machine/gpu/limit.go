package gpu

import "strings"

// switched lists, for names of GPUs, what all of their links to other GPUs carry
// in one direction, in GB/s, as the vendors' data sheets state it. A switch, or a
// bus, joins them: two GPUs have all of it between them. The first name that is
// part of a GPU's name counts.
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

// An xgmi is how GPUs of AMD are joined: by links from one to the other, without
// a switch, so that fewer GPUs have fewer links between them.
type xgmi struct {
	part string
	link float64 // what one link carries in one direction, GB/s
	pair int     // the most links between two GPUs
	all  int     // the links of one GPU
}

// meshed lists them. A link is 16 bits wide; its rate is that of the kernel
// (amdgpu_xgmi_early_init in drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c: 25 GT/s up
// to gfx90a, 32 GT/s from gfx942 on), for MI100 and MI350 the other one of AMD's
// data sheets (23 and 38.4 GT/s). The links of one GPU are those of AMD's pages on
// the architectures (rocm.docs.amd.com, conceptual/gpu-arch); a GPU of MI250 is
// one of its two dies, which have four links between them
// (/sys/class/drm/card*/device/xgmi_num_links in ROCm/rocm-systems#5763). Where no
// page says how many links two GPUs can have, all of one is the number.
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

// Limit returns the GB/s that no collective between these GPUs can be faster
// than: what the links of one of them to the others carry in both directions
// together. The bus bandwidth of a ring is bound by one direction, that of a
// reduction in the switch (NVLS) comes somewhat above it; what is above both is
// not a measurement of traffic. Of several kinds of GPUs the fastest counts. It is
// not known for names that are not listed, and for partitions of one GPU, which
// talk inside of it: then it is the limit of the fastest GPU that is.
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

// carried is what the links of a GPU of this name carry to so many others, in
// one direction.
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

// partitioned reports whether two of the GPUs are parts of one: functions of one
// PCI device, as a GPU in the mode CPX or DPX shows itself.
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
