package doctor

import (
	"context"

	"builder/internal/machine/fabric"
	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// An exam is a host while it is examined. What several checks want to know is
// asked once.
type exam struct {
	host.Host
	work Work

	answers   map[string]answered
	devices   *fabric.Tree
	gpus      *gpuTools
	nodes     []fabric.Node        // nil: not read yet
	libraries map[string]installed // by soname
}

func newExam(h host.Host, w Work) *exam {
	return &exam{Host: h, work: w, answers: map[string]answered{}, libraries: map[string]installed{}}
}

// A gpuTools is what the tools of the vendors say.
type gpuTools struct {
	gpu.Host
	err  error
	tool string // the one that answered; "" where none did
}

// tools asks the vendors' tools.
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

// kfd reads the GPUs that AMD's compute driver knows.
func (e *exam) kfd() []fabric.Node {
	if e.nodes == nil {
		e.nodes = fabric.ReadKFD(e.Host)
	}
	return e.nodes
}
