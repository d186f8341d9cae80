package locate

import (
	"context"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/bench"
	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// GPUs are the GPUs that take part in a comparison.
type GPUs struct {
	Count int
	Host  bench.Host // empty where the driver cannot be asked
	Limit float64    // GB/s, 0 where the GPUs are not known
}

// FindGPUs counts the GPUs that take part, all that are visible in the environment
// for 0. Where no tool can be asked and the number is said, the programs will tell
// what they ran on.
func FindGPUs(ctx context.Context, wanted int, env map[string]string) (GPUs, error) {
	h, err := gpu.Find(ctx, host.Run)
	h = h.VisibleTo(env)
	switch {
	case err != nil && wanted > 0:
		return GPUs{Count: wanted}, nil
	case err != nil:
		return GPUs{}, diag.Errorf(diag.Usage, "--gpus all: counting the GPUs of this host: %w", err).WithHint("say how many: --gpus 2")
	case wanted > len(h.GPUs) || len(h.GPUs) == 0:
		return GPUs{}, diag.Errorf(diag.Usage, "--gpus: %d are wanted, this host has %d", max(wanted, 1), len(h.GPUs))
	case wanted == 0:
		wanted = len(h.GPUs)
	}
	return describe(h, wanted), nil
}

// describe says what the first n GPUs of a host are.
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
