package doctor

import (
	"context"

	"builder/internal/machine/fabric"
	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// An exam is an examination of a host. It caches facts shared by several checks.
type exam struct {
	host.Host
	work Work

	answers   map[string]answered
	devices   *fabric.Tree
	gpus      *gpuTools
	nodes     []fabric.Node        // nil: not yet read
	libraries map[string]installed // by soname
}

func newExam(h host.Host, w Work) *exam {
	return &exam{Host: h, work: w, answers: map[string]answered{}, libraries: map[string]installed{}}
}

// A gpuTools holds the output of the vendors' tools.
type gpuTools struct {
	gpu.Host
	err  error
	tool string // the tool that answered, or ""
}

// tools runs the vendors' tools.
func (e *exam) tools(ctx context.Context) gpuTools {
	if e.gpus == nil {
		e.gpus = &gpuTools{}
		e.gpus.Host, e.gpus.err = gpu.Find(ctx, func(ctx context.Context, name string, args ...string) (string, error) {
			text, err := e.Run(ctx, name, args...)
			if err == nil && e.gpus.tool == "" {
				e.gpus.tool = name
			}
			return text, err
		})
	}
	return *e.gpus
}

// pci reads the tree of PCI devices.
func (e *exam) pci() *fabric.Tree {
	if e.devices == nil {
		e.devices = fabric.ReadPCI(e.Host)
	}
	return e.devices
}

// kfd reads the GPUs known to AMD's compute driver.
func (e *exam) kfd() []fabric.Node {
	if e.nodes == nil {
		e.nodes = fabric.ReadKFD(e.Host)
	}
	return e.nodes
}
