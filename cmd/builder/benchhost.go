package main

import (
	"context"
	"strings"

	"builder/internal/bench"
	"builder/internal/diag"
	"builder/internal/gpu"
	"builder/internal/host"
)

// benchGPUs are the GPUs that take part in a comparison.
type benchGPUs struct {
	count int
	host  bench.Host // empty where the driver cannot be asked
	limit float64    // GB/s, 0 where the GPUs are not known
}

// findGPUs counts the GPUs that take part, all that are visible in the environment
// for 0. Where no tool can be asked and the number is said, the programs will tell
// what they ran on.
func findGPUs(ctx context.Context, wanted int, env map[string]string) (benchGPUs, error) {
	h, err := gpu.Find(ctx, host.Run)
	h = h.VisibleTo(env)
	switch {
	case err != nil && wanted > 0:
		return benchGPUs{count: wanted}, nil
	case err != nil:
		return benchGPUs{}, diag.Errorf(diag.Usage, "--gpus all: counting the GPUs of this host: %w", err).WithHint("say how many: --gpus 2")
	case wanted > len(h.GPUs) || len(h.GPUs) == 0:
		return benchGPUs{}, diag.Errorf(diag.Usage, "--gpus: %d are wanted, this host has %d", max(wanted, 1), len(h.GPUs))
	case wanted == 0:
		wanted = len(h.GPUs)
	}
	return describeGPUs(h, wanted), nil
}

// describeGPUs says what the first n GPUs of a host are.
func describeGPUs(h gpu.Host, n int) benchGPUs {
	found := benchGPUs{count: n, host: bench.Host{Driver: h.Driver}}
	for _, g := range h.GPUs[:n] {
		found.host.GPUs = append(found.host.GPUs, g.Name)
	}
	found.limit, _ = gpu.Limit(h.GPUs[:n])
	var kinds []string
	for i := range min(n, len(h.Links)) {
		kinds = append(kinds, h.Links[i][i+1:n]...)
	}
	found.host.Link = strings.Join(distinct(kinds), ", ")
	return found
}
