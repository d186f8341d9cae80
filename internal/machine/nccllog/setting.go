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
	{"NCCL_P2P_DISABLE", "1", "no traffic from GPU to GPU: xGMI and NVLink are unused"},
	{"NCCL_P2P_LEVEL", "LOC", "no traffic from GPU to GPU: xGMI and NVLink are unused"},
	{"NCCL_SHM_DISABLE", "1", "GPUs of one host without a direct link communicate over the network"},
	{"NCCL_IB_DISABLE", "1", "no InfiniBand and no RoCE: sockets between hosts"},
	{"NCCL_NET_GDR_LEVEL", "LOC", "no GPU Direct RDMA"},
	{"NCCL_NET_GDR_LEVEL", "0", "no GPU Direct RDMA"},
	{"NCCL_ALGO", "", "the library no longer chooses the algorithm by size"},
	{"NCCL_PROTO", "", "the library no longer chooses the protocol by size"},
	{"NCCL_MAX_NCHANNELS", "", "limits the channels to this number"},
	{"NCCL_NTHREADS", "", "limits the threads of each block to this number"},
}

func costOf(name, value string) string {
	for _, c := range costs {
		if c.name == name && (c.value == "" || strings.EqualFold(value, c.value)) {
			return c.what
		}
	}
	return ""
}
