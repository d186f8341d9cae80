// Package gpu tells which GPUs a host has, with which driver, how they are linked and
// what these links carry at most, by asking the vendors' tools.
//
// That there is no GPU and that nobody could be asked are different answers: the
// first is a [Host] without GPUs, the second [ErrNoTool]. What the kernel tells of
// them without a tool reads package fabric.
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
	"time"
)

// A Host is what the GPUs of a host are.
type Host struct {
	GPUs   []GPU  `json:"gpus"`
	Driver string `json:"driver"`         // version of the kernel driver
	CUDA   string `json:"cuda,omitempty"` // highest CUDA that the driver supports
	// Links is how each GPU reaches each other one: NV18, XGMI, PIX, SYS; empty for
	// itself. It is nil where the tool does not say.
	Links [][]string `json:"links,omitempty"`
	// AMD says that a tool of AMD told of them: its programs see GPUs by other rules.
	AMD bool `json:"-"`
}

// A GPU is one device, in the order of the tool.
type GPU struct {
	Name  string `json:"name"`   // NVIDIA H200
	BusID string `json:"bus_id"` // 0000:8d:00.0
}

// ErrNoTool says that neither nvidia-smi nor amd-smi nor rocm-smi is there.
var ErrNoTool = errors.New("no nvidia-smi, amd-smi or rocm-smi answers here: this host has no GPU driver, or the tools are not in PATH")

// A Tool runs one of the vendors' tools and returns what it printed to both
// outputs. An absent tool is [exec.ErrNotFound]; one that fails has printed why.
type Tool func(ctx context.Context, name string, args ...string) (string, error)

// Find asks the first tool that is there.
func Find(ctx context.Context, tool Tool) (Host, error) {
	for _, ask := range []func(context.Context, Tool) (Host, error){findNVIDIA, findAMD, findROCm} {
		host, err := ask(ctx, tool.bounded)
		if !errors.Is(err, exec.ErrNotFound) {
			return host, err
		}
	}
	return Host{}, ErrNoTool
}

// toolTime is how long a tool may take: a driver that hangs hangs it too.
const toolTime = 60 * time.Second

// bounded gives each question that time.
func (t Tool) bounded(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, toolTime, fmt.Errorf("%s did not answer within %v: the driver hangs", name, toolTime))
	defer cancel()
	return t(ctx, name, args...)
}

// failed makes the error of a tool that ran and refused: its first line says why.
func failed(name, output string, err error) error {
	first, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	return fmt.Errorf("%s: %w: %.200s", name, err, first)
}

// busID writes a PCI address as the kernel does: 00000000:8D:00.0 is 0000:8d:00.0.
func busID(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if domain, rest, ok := strings.Cut(text, ":"); ok && len(domain) == 8 {
		text = strings.TrimPrefix(domain, "0000") + ":" + rest
	}
	return text
}

// visible returns the host as a program sees it that finds list in
// CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES: the GPUs of these numbers in this
// order, up to the first that is none. A list of other names leaves the host as
// it is.
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
	seen := Host{Driver: h.Driver, CUDA: h.CUDA, AMD: h.AMD}
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

// VisibleTo returns the host as a program sees it in this environment. ROCr hides
// first and counts the rest anew; HIP then takes HIP_VISIBLE_DEVICES, or
// CUDA_VISIBLE_DEVICES where that is empty, and an empty list hides nothing. CUDA
// knows its own variable alone, and an empty list hides everything.
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

// Linked reports whether every two of the GPUs of these addresses are joined by
// NVLink or xGMI, and if not, how those are that are joined worst. It is unknown
// where an address or a link is.
func (h Host) Linked(addresses []string) (all bool, worst string, known bool) {
	var indexes []int
	for _, address := range addresses {
		i := h.index(address)
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
			if link := h.Links[i][j]; !direct(link) {
				return false, link, true
			}
		}
	}
	return len(indexes) > 1, "", len(indexes) > 1
}

func (h Host) index(address string) int {
	for i, g := range h.GPUs {
		if g.BusID == busID(address) {
			return i
		}
	}
	return -1
}

// direct reports whether a link goes from GPU to GPU: NV and the number of
// bonded links, or XGMI.
func direct(link string) bool {
	return strings.HasPrefix(link, "NV") || link == "XGMI"
}
