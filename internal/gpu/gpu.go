// Package gpu asks the driver of this host which GPUs there are and how they are
// linked, so that a figure can say what it was measured on.
package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Host is what the driver says.
type Host struct {
	GPUs   []string // NVIDIA H200, in the order of the driver
	Driver string   // 570.86.15
	links  [][]string
}

// ErrNoDriver is a host where nobody answers for the GPUs.
var ErrNoDriver = errors.New("nvidia-smi is not here")

const patience = 30 * time.Second

// Probe asks nvidia-smi.
func Probe(ctx context.Context) (Host, error) {
	if _, err := exec.LookPath("nvidia-smi"); err != nil {
		return Host{}, ErrNoDriver
	}
	list, err := ask(ctx, "--query-gpu=name,driver_version", "--format=csv,noheader")
	if err != nil {
		return Host{}, err
	}
	h, err := parseList(list)
	if err != nil {
		return Host{}, err
	}
	topology, err := ask(ctx, "topo", "-m")
	if err != nil {
		return Host{}, err
	}
	h.links = parseTopology(topology, len(h.GPUs))
	return h, nil
}

func ask(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "nvidia-smi", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking nvidia-smi %s: %w: %.200s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// parseList reads lines such as `NVIDIA H200, 570.86.15`.
func parseList(out string) (Host, error) {
	var h Host
	for line := range strings.Lines(out) {
		name, driver, ok := strings.Cut(strings.TrimSpace(line), ", ")
		if !ok || name == "" || driver == "" {
			return Host{}, fmt.Errorf("nvidia-smi lists %.200q, which is no GPU", line)
		}
		h.GPUs, h.Driver = append(h.GPUs, name), driver
	}
	if len(h.GPUs) == 0 {
		return Host{}, errors.New("nvidia-smi lists no GPU")
	}
	return h, nil
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// parseTopology reads the matrix of `nvidia-smi topo -m`: a line for each GPU,
// with a column for each GPU first. It is nil where the matrix is not whole: a
// heading without a link is no reason to measure nothing.
func parseTopology(out string, gpus int) [][]string {
	var links [][]string
	for line := range strings.Lines(colours.ReplaceAllString(out, "")) {
		fields := strings.Fields(line)
		if len(links) < gpus && len(fields) > gpus && fields[0] == fmt.Sprintf("GPU%d", len(links)) && fields[len(links)+1] == "X" {
			links = append(links, fields[1:gpus+1])
		}
	}
	if len(links) != gpus {
		return nil
	}
	return links
}

// Link says how the first n GPUs are linked, in the words of nvidia-smi: NV18
// between each two, or every kind that occurs. It is empty where that is not
// known, or there is but one GPU.
func (h Host) Link(n int) string {
	var kinds []string
	for i := range min(n, len(h.links)) {
		kinds = append(kinds, h.links[i][i+1:min(n, len(h.links))]...)
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), ", ")
}
