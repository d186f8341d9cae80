package gpu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// findAMD asks amd-smi, or else rocm-smi, for the GPUs, and rocm-smi for their links.
func findAMD(ctx context.Context, tool Tool) (Host, error) {
	parse := parseAMD
	text, err := tool(ctx, "amd-smi", "static", "--asic", "--bus", "--board", "--driver", "--json")
	if errors.Is(err, exec.ErrNotFound) {
		parse = parseROCm
		text, err = tool(ctx, "rocm-smi", "--showproductname", "--showbus", "--showdriverversion", "--json")
	}
	if err != nil {
		return Host{}, err
	}
	h, err := parse(text)
	if err != nil {
		return Host{}, err
	}
	if text, err := tool(ctx, "rocm-smi", "--showtopotype", "--json"); err == nil { // else the links are unknown
		h.Links = parseROCmTopology(text, len(h.GPUs))
	}
	return h, nil
}

// amdGPU is one element of amd-smi's list.
type amdGPU struct {
	ASIC struct {
		Name string `json:"market_name"`
	} `json:"asic"`
	Board struct {
		Name string `json:"product_name"` // used if market_name is only a family
	} `json:"board"`
	Bus struct {
		BDF string `json:"bdf"`
	} `json:"bus"`
	Driver struct {
		Version string `json:"version"`
	} `json:"driver"`
}

// parseAMD parses the JSON of `amd-smi static`: a list, which is in gpu_data since ROCm
// 7.
func parseAMD(text string) (Host, error) {
	var list []amdGPU
	var wrapped struct {
		GPUs []amdGPU `json:"gpu_data"`
	}
	data := []byte(text)
	if err := json.Unmarshal(data, &list); err != nil {
		if err := json.Unmarshal(data, &wrapped); err != nil {
			return Host{}, fmt.Errorf("amd-smi: %w", err)
		}
		list = wrapped.GPUs
	}
	h := Host{AMD: true}
	for _, g := range list {
		name := g.ASIC.Name
		if !strings.Contains(name, "MI") && g.Board.Name != "" && g.Board.Name != "N/A" {
			name = g.Board.Name
		}
		h.GPUs = append(h.GPUs, GPU{Name: name, BusID: busID(g.Bus.BDF)})
		h.Driver = g.Driver.Version
	}
	return h, nil
}

// parseROCm parses the JSON of rocm-smi. The spelling of its keys varies between
// releases.
func parseROCm(text string) (Host, error) {
	var doc map[string]map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		return Host{}, fmt.Errorf("rocm-smi: %w", err)
	}
	h := Host{AMD: true, Driver: value(doc["system"], "Driver version")}
	byNumber := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	for _, key := range slices.SortedFunc(maps.Keys(doc), byNumber) { // card9 comes before card10
		if strings.HasPrefix(key, "card") {
			h.GPUs = append(h.GPUs, GPU{Name: value(doc[key], "Card Series", "Device Name"), BusID: busID(value(doc[key], "PCI Bus"))})
		}
	}
	return h, nil
}

// value returns the first of the named fields, ignoring case.
func value(fields map[string]any, names ...string) string {
	for _, name := range names {
		for key, v := range fields {
			if text, ok := v.(string); ok && strings.EqualFold(key, name) {
				return text
			}
		}
	}
	return ""
}

var between = regexp.MustCompile(`Link type between DRM devices (\d+) and (\d+)$`)

// parseROCmTopology parses the JSON of `rocm-smi --showtopotype` for n GPUs. It returns
// nil if a pair is missing.
func parseROCmTopology(text string, n int) [][]string {
	var doc map[string]map[string]any
	if json.Unmarshal([]byte(text), &doc) != nil {
		return nil
	}
	links := make([][]string, n)
	for i := range links {
		links[i] = make([]string, n)
	}
	found := 0
	for key, v := range doc["system"] {
		m := between.FindStringSubmatch(key)
		link, ok := v.(string)
		if m == nil || !ok {
			continue
		}
		i, err1 := strconv.Atoi(m[1])
		j, err2 := strconv.Atoi(m[2])
		if err1 != nil || err2 != nil || i >= n || j >= n || i == j {
			return nil
		}
		links[i][j], links[j][i] = link, link
		found++
	}
	if n < 2 || found < n*(n-1)/2 {
		return nil
	}
	return links
}
