// Package gpu reports the GPUs of a host, their driver, their links and the highest
// bandwidth of these links. It runs the vendors' tools.
//
// A host without GPUs and a host without tools give different results: a [Host] without
// GPUs, and [ErrNoTool].
package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A Host describes the GPUs of a host.
type Host struct {
	GPUs   []GPU  `json:"gpus"`
	Driver string `json:"driver"`         // version of the kernel driver
	CUDA   string `json:"cuda,omitempty"` // highest CUDA version supported by the driver
	// Links is the type of link between each pair of GPUs: NV18, XGMI, PIX, SYS; ""
	// between a GPU and itself. It is nil if the tool does not report links.
	Links [][]string `json:"links,omitempty"`
	// AMD means a tool of AMD reported the GPUs. Different variables limit the visible
	// GPUs there.
	AMD bool `json:"-"`
}

// A GPU is one device. GPUs are in the order of the tool.
type GPU struct {
	Name  string `json:"name"`   // NVIDIA H200
	BusID string `json:"bus_id"` // 0000:8d:00.0
}

// ErrNoTool means nvidia-smi, amd-smi and rocm-smi are all missing.
var ErrNoTool = errors.New("nvidia-smi, amd-smi and rocm-smi do not work: this host has no GPU driver, or the tools are not in PATH")

// A Tool runs a vendor tool within some time and returns its stdout and stderr. A missing tool is
// [exec.ErrNotFound]. The output of a failed tool says why.
type Tool func(ctx context.Context, name string, args ...string) (string, error)

// Find runs the first available tool.
func Find(ctx context.Context, tool Tool) (Host, error) {
	for _, ask := range []func(context.Context, Tool) (Host, error){findNVIDIA, findAMD} {
		host, err := ask(ctx, tool.run)
		if !errors.Is(err, exec.ErrNotFound) {
			return host, err
		}
	}
	return Host{}, ErrNoTool
}

// run runs a tool. The error of a failed tool has the first line of its output.
func (t Tool) run(ctx context.Context, name string, args ...string) (string, error) {
	text, err := t(ctx, name, args...)
	if err == nil || errors.Is(err, exec.ErrNotFound) {
		return text, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return text, fmt.Errorf("%s: %w: %.200s", name, err, first)
}

// busID converts a PCI address to the kernel's notation: 00000000:8D:00.0 is
// 0000:8d:00.0.
func busID(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if domain, rest, ok := strings.Cut(text, ":"); ok && len(domain) == 8 {
		text = strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	return text
}

// visible returns the host seen by a program with this list in CUDA_VISIBLE_DEVICES or
// HIP_VISIBLE_DEVICES. It has the GPUs with these numbers in this order, up to the
// first invalid number. A list with other names leaves the host unchanged.
func (h Host) visible(list string) Host {
	if strings.ContainsFunc(list, func(r rune) bool { return !strings.ContainsRune("0123456789, -", r) }) {
		return h
	}
	var chosen []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 0 || n >= len(h.GPUs) || slices.Contains(chosen, n) {
			break
		}
		chosen = append(chosen, n)
	}
	seen := h
	seen.GPUs, seen.Links = nil, nil
	for _, i := range chosen {
		seen.GPUs = append(seen.GPUs, h.GPUs[i])
		if h.Links == nil {
			continue
		}
		var row []string
		for _, j := range chosen {
			row = append(row, h.Links[i][j])
		}
		seen.Links = append(seen.Links, row)
	}
	return seen
}

// VisibleVariables are the variables that hide GPUs from a program.
var VisibleVariables = []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}

// VisibleTo returns the host seen by a program in this environment. ROCr hides GPUs
// first and renumbers the rest. HIP then uses HIP_VISIBLE_DEVICES, or
// CUDA_VISIBLE_DEVICES if the former is empty, and an empty list hides nothing. CUDA
// uses only its own variable, and an empty list hides everything.
func (h Host) VisibleTo(env map[string]string) Host {
	if !h.AMD {
		if list, set := env["CUDA_VISIBLE_DEVICES"]; set {
			return h.visible(list)
		}
		return h
	}
	if list, set := env["ROCR_VISIBLE_DEVICES"]; set {
		h = h.visible(list)
	}
	if list := cmp.Or(env["HIP_VISIBLE_DEVICES"], env["CUDA_VISIBLE_DEVICES"]); list != "" {
		h = h.visible(list)
	}
	return h
}

// Linked reports whether NVLink or xGMI connects every pair of the GPUs with these
// addresses. If not, worst is the first link of another type. known is false if an
// address or a link is unknown.
func (h Host) Linked(addresses []string) (all bool, worst string, known bool) {
	var indexes []int
	for _, address := range addresses {
		i := slices.IndexFunc(h.GPUs, func(g GPU) bool { return g.BusID == busID(address) })
		if i < 0 {
			return false, "", false
		}
		indexes = append(indexes, i)
	}
	for _, i := range indexes {
		for _, j := range indexes {
			if i == j {
				continue
			}
			if i >= len(h.Links) || j >= len(h.Links[i]) || h.Links[i][j] == "" {
				return false, "", false
			}
			// NV with the number of bonded links, and XGMI, connect GPUs directly.
			if link := h.Links[i][j]; !strings.HasPrefix(link, "NV") && link != "XGMI" {
				return false, link, true
			}
		}
	}
	return len(indexes) > 1, "", len(indexes) > 1
}
