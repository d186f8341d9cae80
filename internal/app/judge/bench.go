package judge

import (
	"context"
	"time"

	"builder/internal/app/build"
	"builder/internal/base/diag"
	"builder/internal/gates/device"
	"builder/internal/machine/gpu"
	"builder/internal/machine/locate"
)

// A BenchRequest names a library to measure. The other one is Against of the device.
type BenchRequest struct {
	Library     string
	Collectives []string
	Device      *DeviceRequest
}

// A BenchReport holds the speed of one library, or of two.
type BenchReport struct {
	Schema  int           `json:"schema"`
	Builder string        `json:"builder"`
	Host    *gpu.Host     `json:"host,omitempty"`
	GPUs    int           `json:"gpus"`
	Library string        `json:"library"`
	Other   string        `json:"other,omitempty"`
	Sizes   []device.Size `json:"sizes"`
}

// Bench measures a library, or two in turn. An error ends the measurement; the report
// holds the collectives before it, and is empty if there are none.
func Bench(ctx context.Context, s build.Setup, r BenchRequest) (BenchReport, error) {
	run, err := openGateRun(s, GateRequest{Device: r.Device})
	if err != nil {
		return BenchReport{}, err
	}
	defer run.close()
	if err := run.prepareGPUs(ctx); err != nil {
		return BenchReport{}, err
	}
	library, err := run.library(ctx, "LIBRARY", r.Library, "measured")
	if err != nil {
		return BenchReport{}, err
	}
	setup := run.gpus
	setup.Library = library.Dir
	if setup.GPUs == 1 {
		return BenchReport{}, diag.Errorf(diag.Usage, "a collective of one GPU moves nothing, so its bandwidth is 0").WithHint("measure on two GPUs or more: --gpus 2 on a host with two, or --launcher with several hosts")
	}
	report := BenchReport{Schema: 1, Builder: s.Version, Host: run.host, GPUs: setup.GPUs, Library: library.Name, Other: setup.Baseline, Sizes: []device.Size{}}
	for _, collective := range r.Collectives {
		s.Display.Start("bench", collective)
		start := time.Now()
		sizes, err := setup.Measure(ctx, collective)
		s.Display.Done("bench", collective, time.Since(start), false, err)
		if err != nil && len(report.Sizes) == 0 {
			return BenchReport{}, err
		}
		if err != nil {
			return report, err
		}
		report.Sizes = append(report.Sizes, sizes...)
	}
	return report, nil
}

// library finds a library to measure. Errors name it as what the user gave.
func (b *gateRun) library(ctx context.Context, what, place, dir string) (locate.Library, error) {
	path, err := b.tool(ctx, place)
	if err != nil {
		return locate.Library{}, err
	}
	found, err := locate.FindLibrary(path, b.scratch, dir)
	if err != nil {
		return found, diag.Errorf(diag.Usage, "%s: %w", what, err).WithHint("name libnccl.so.2 or librccl.so.1, a directory with one, a wheel, or the directory of a cell")
	}
	return found, nil
}
