package locate

import (
	"context"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/bench"
	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// GPUs are the GPUs used in a comparison.
type GPUs struct {
	Count int
	Host  bench.Host // empty if no vendor tool works
	Limit float64    // upper limit of busbw in GB/s, 0 if no vendor tool works
}

// FindGPUs selects the GPUs to use; wanted = 0 selects all GPUs visible in the
// environment. Without a working tool but with a given number, it returns only the
// number, and the programs report the GPUs later.
func FindGPUs(ctx context.Context, wanted int, env map[string]string) (GPUs, error) {
	h, err := gpu.Find(ctx, host.Run)
	h = h.VisibleTo(env)
	switch {
	case err != nil && wanted > 0:
		return GPUs{Count: wanted}, nil
	case err != nil:
		return GPUs{}, diag.Errorf(diag.Usage, "--gpus all: counting the GPUs of this host: %w", err).WithHint("give the number: --gpus 2")
	case wanted > len(h.GPUs) || len(h.GPUs) == 0:
		return GPUs{}, diag.Errorf(diag.Usage, "--gpus: %d requested, this host has %d", max(wanted, 1), len(h.GPUs))
	case wanted == 0:
		wanted = len(h.GPUs)
	}
	return describe(h, wanted), nil
}

// describe describes the first n GPUs of a host.
func describe(h gpu.Host, n int) GPUs {
	found := GPUs{Count: n, Host: bench.Host{Driver: h.Driver}}
	for _, g := range h.GPUs[:n] {
		found.Host.GPUs = append(found.Host.GPUs, g.Name)
	}
	found.Limit, _ = gpu.Limit(h.GPUs[:n])
	var kinds []string
	for i := range min(n, len(h.Links)) {
		kinds = append(kinds, h.Links[i][i+1:n]...)
	}
	found.Host.Link = strings.Join(distinct(kinds), ", ")
	return found
}
