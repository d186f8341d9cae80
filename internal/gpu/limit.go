package gpu

import "strings"

// fastest lists, for names of GPUs, what their links to other GPUs carry in one
// direction, in GB/s, as the vendors' data sheets state it. The first name that
// is part of a GPU's name counts.
var fastest = []struct {
	part string
	each float64
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
	{"MI355", 538},
	{"MI350", 538},
	{"MI325", 448},
	{"MI300", 448},
	{"MI250", 400},
	{"MI210", 150},
	{"MI200", 400},
	{"MI100", 138}, // xGMI
}

// Limit returns the GB/s that no collective between GPUs of this name can be
// faster than: what the links carry in both directions together. The bus
// bandwidth of a ring is bound by one direction, that of a reduction in the
// switch (NVLS) comes somewhat above it; what is above both is not a measurement
// of traffic. For a GPU that is not known it is the limit of the fastest that is.
func Limit(name string) (limit float64, known bool) {
	best := 0.0
	for _, f := range fastest {
		if strings.Contains(name, f.part) {
			return 2 * f.each, true
		}
		best = max(best, f.each)
	}
	return 2 * best, false
}
