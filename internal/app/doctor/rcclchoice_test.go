package doctor

import (
	"strings"
	"testing"
	"testing/fstest"
)

// Each case tests one of RCCL's conditions for GPU Direct RDMA alone.
func TestGDR(t *testing.T) {
	const options = "CONFIG_DMABUF_MOVE_NOTIFY=y\nCONFIG_PCI_P2PDMA=y\n"
	base := map[string]string{"proc/sys/kernel/osrelease": "6.8.0-45-generic\n"}
	symbol := "0000000000000000 T ib_register_peer_memory_client\t[ib_uverbs]\n"
	for name, c := range map[string]struct {
		files map[string]string
		rccl  string
		want  string
		also  string // in the reason or the remedy
	}{
		"client":                   {map[string]string{"sys/kernel/mm/memory_peers/amdkfd/version": "1.0"}, "2.18.3", "GPU Direct RDMA by peer memory", "mm/memory_peers/amdkfd exists"},
		"other path, old RCCL":     {map[string]string{"sys/kernel/memory_peers/amdkfd/version": "1.0"}, "2.20.5", "no GPU Direct RDMA", "RCCL of ROCm 6.3 or newer"},
		"other path, newer RCCL":   {map[string]string{"sys/memory_peers/amdkfd/version": "1.0"}, "2.21.5", "GPU Direct RDMA by peer memory", ""},
		"other path, unknown RCCL": {map[string]string{"sys/kernel/memory_peers/amdkfd/version": "1.0"}, "", "GPU Direct RDMA by peer memory", ""},
		"symbol alone":             {map[string]string{"proc/kallsyms": symbol}, "2.22.3", "GPU Direct RDMA reported but not working", "ROCm/rocm-systems#9540"},
		"symbol, old RCCL":         {map[string]string{"proc/kallsyms": symbol, "boot/config-6.8.0-45-generic": options}, "2.20.5", "GPU Direct RDMA by DMA-BUF", "NCCL_DMABUF_ENABLE=1"},
		"pointer to the symbol":    {map[string]string{"proc/kallsyms": "0000000000000000 b pfn_ib_register_peer_memory_client\n"}, "2.22.3", gdrUnknown, "cannot be read"},
		"DMA-BUF":                  {map[string]string{"boot/config-6.8.0-45-generic": options}, "2.21.5", "GPU Direct RDMA by DMA-BUF", ""},
		"options not at /boot":     {map[string]string{"lib/modules/6.8.0-45-generic/config": options}, "2.21.5", "no GPU Direct RDMA", "mount this file into the container"},
		"half of the options":      {map[string]string{"boot/config-6.8.0-45-generic": "CONFIG_PCI_P2PDMA=y\n"}, "2.21.5", "no GPU Direct RDMA", "lacks CONFIG_DMABUF_MOVE_NOTIFY"},
		"Hyper-V": {map[string]string{
			"sys/devices/virtual/dmi/id/bios_version": "Hyper-V UEFI Release v4.1", "proc/sys/kernel/numa_balancing": "1", "sys/kernel/mm/memory_peers/amdkfd/version": "1.0",
		}, "2.21.5", "GPU Direct RDMA only with relaxed ordering", "NCCL_IB_PCI_RELAXED_ORDERING"},
		"Hyper-V, symbol": {map[string]string{"sys/devices/virtual/dmi/id/bios_version": "Hyper-V UEFI Release v4.1", "proc/kallsyms": symbol}, "2.21.5", gdrUnknown, ""},
	} {
		root := fstest.MapFS{}
		for _, files := range []map[string]string{base, c.files} {
			for path, text := range files {
				root[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
			}
		}
		got := newExam(fake(root, nil), work).gdr(c.rccl)
		if got.found != c.want || !strings.Contains(got.because+"; "+got.remedy, c.also) {
			t.Errorf("%s: got %+v, want %s", name, got, c.want)
		}
	}
}

// The cases include GPUs without a link, and an Intel processor, on which RCCL uses P2P
// over few kinds of paths.
func TestBetweenGPUs(t *testing.T) {
	node := func(simds, location string, links ...string) map[string]string {
		files := map[string]string{"properties": "simd_count " + simds + "\ngfx_target_version 110000\ndomain 0\nlocation_id " + location + "\n"}
		for i, link := range links {
			files["p2p_links/"+string(rune('0'+i))+"/properties"] = link
		}
		return files
	}
	host := func(cpu string, nodes ...map[string]string) *exam {
		root := fstest.MapFS{"proc/cpuinfo": {Data: []byte("vendor_id\t: " + cpu + "\n")}}
		for i, files := range nodes {
			for name, text := range files {
				root["sys/class/kfd/kfd/topology/nodes/"+string(rune('0'+i))+"/"+name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		return newExam(fake(root, nil), work)
	}
	to2, to1 := "type 2\nnode_to 2\nweight 40\n", "type 2\nnode_to 1\nweight 40\n"
	for name, c := range map[string]struct {
		e    *exam
		want string
	}{
		"no links": {host("AuthenticAMD", node("0", "0"), node("192", "768"), node("192", "1536")), "1 of 1 pairs of GPUs through host memory (SHM)"},
		"PCIe":     {host("AuthenticAMD", node("0", "0"), node("192", "768", to2), node("192", "1536", to1)), "1 of 1 pairs of GPUs P2P over PCIe"},
		"Intel":    {host("GenuineIntel", node("0", "0"), node("192", "768", to2), node("192", "1536", to1)), "1 of 1 pairs of GPUs P2P over PCIe or host memory (SHM)"},
		"nonsense": {host("AuthenticAMD", node("0", "0"), node("192", "768", "type 9999999999999999999\nnode_to 2\n"), node("192", "1536", "type two\n")), "1 of 1 pairs of GPUs through host memory (SHM)"},
		"one GPU":  {host("AuthenticAMD", node("0", "0"), node("192", "768")), ""},
	} {
		got := c.e.betweenGPUs(c.e.kfd())
		if len(got) == 0 && c.want == "" {
			continue
		}
		if len(got) != 1 || got[0].found != c.want || got[0].because == "" {
			t.Errorf("%s: got %+v, want %s", name, got, c.want)
		}
	}
}

// An RCCL library has hundreds of megabytes. The library check and the RCCL check must
// read it only once.
func TestLibrariesAreReadOnce(t *testing.T) {
	asked := 0
	h := change(t, "amd-roce", nil, func(name string) (string, error) {
		if name == "python3" {
			asked++
		}
		return "", nil
	})
	Examine(t.Context(), h, work)
	if families := 2; asked != families {
		t.Errorf("looked for libraries %d times, there are %d families", asked, families)
	}
}
