package gpu

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

const nvidiaSMI = "nvidia-smi"

func findNVIDIA(ctx context.Context, tool Tool) (Host, error) {
	list, err := tool(ctx, nvidiaSMI, "--query-gpu=name,pci.bus_id,driver_version", "--format=csv,noheader")
	if strings.Contains(list, "No devices were found") {
		return Host{}, nil
	}
	if err != nil {
		return Host{}, err
	}
	host, err := parseNVIDIA(list)
	if err != nil {
		return Host{}, err
	}
	// The next two are optional, because an old tool, or one in a container, may not
	// report them.
	if text, err := tool(ctx, nvidiaSMI); err == nil {
		host.CUDA = parseCUDA(text)
	}
	if text, err := tool(ctx, nvidiaSMI, "topo", "-m"); err == nil {
		host.Links = parseTopology(text, len(host.GPUs))
	}
	return host, nil
}

// parseNVIDIA parses the CSV of name, pci.bus_id and driver_version.
func parseNVIDIA(text string) (Host, error) {
	var h Host
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		fields := strings.Split(line, ", ")
		if len(fields) != 3 || !address.MatchString(fields[1]) {
			return Host{}, fmt.Errorf("nvidia-smi: %.200q is not a GPU", line)
		}
		h.GPUs = append(h.GPUs, GPU{Name: fields[0], BusID: busID(fields[1])})
		h.Driver = fields[2]
	}
	return h, nil
}

var (
	address = regexp.MustCompile(`^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$`)
	cuda    = regexp.MustCompile(`CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)`)
	colour  = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// parseCUDA returns the highest CUDA version supported by the driver, from the header
// of nvidia-smi, or "".
func parseCUDA(text string) string {
	if m := cuda.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// parseTopology parses the matrix of `nvidia-smi topo -m` for n GPUs. It returns nil
// for any other text.
func parseTopology(text string, n int) [][]string {
	var links [][]string
	for line := range strings.Lines(colour.ReplaceAllString(text, "")) {
		fields := strings.Fields(line)
		if i := len(links); i == n || len(fields) <= n || fields[0] != fmt.Sprintf("GPU%d", i) || fields[i+1] != "X" {
			continue // header, NICs or legend
		}
		row := make([]string, n)
		for i, link := range fields[1 : n+1] {
			if link != "X" {
				row[i] = link
			}
		}
		links = append(links, row)
	}
	if len(links) != n {
		return nil
	}
	return links
}
