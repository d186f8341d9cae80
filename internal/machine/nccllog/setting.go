package nccllog

import "strings"

// A Setting is a variable set in the environment.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Costs describes a known disadvantage of the value, or is empty.
	Costs string `json:"costs,omitempty"`
}

// costs lists settings with a disadvantage, for one value or, with "", for every value.
// Sources are the user guides of NCCL (NVIDIA) and RCCL (AMD), environment variables.
var costs = []struct{ name, value, what string }{
	{"NCCL_P2P_DISABLE", "1", "no traffic from GPU to GPU: xGMI and NVLink are not used"},
	{"NCCL_P2P_LEVEL", "LOC", "no traffic from GPU to GPU: xGMI and NVLink are not used"},
	{"NCCL_SHM_DISABLE", "1", "GPUs of one host that cannot reach each other talk over the network"},
	{"NCCL_IB_DISABLE", "1", "no InfiniBand and no RoCE: sockets between hosts"},
	{"NCCL_NET_GDR_LEVEL", "LOC", "no GPU Direct RDMA"},
	{"NCCL_NET_GDR_LEVEL", "0", "no GPU Direct RDMA"},
	{"NCCL_ALGO", "", "the library chooses no algorithm itself, for any size"},
	{"NCCL_PROTO", "", "the library chooses no protocol itself, for any size"},
	{"NCCL_MAX_NCHANNELS", "", "no more channels than that"},
	{"NCCL_NTHREADS", "", "no more threads than that in each block"},
}

func costOf(name, value string) string {
	for _, c := range costs {
		if c.name == name && (c.value == "" || strings.EqualFold(value, c.value)) {
			return c.what
		}
	}
	return ""
}
