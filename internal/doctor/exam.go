package doctor

import (
	"context"

	"builder/internal/gpu"
)

// An exam is a host while it is examined. What several checks want to know is
// asked once.
type exam struct {
	Host
	work Work

	answers map[string]answered
	devices *pciTree
	gpus    *gpuTools
	nodes   *[]kfdNode
}

func newExam(h Host, w Work) *exam {
	return &exam{Host: h, work: w, answers: map[string]answered{}}
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
func (e *exam) pci() *pciTree {
	if e.devices == nil {
		e.devices = readPCI(e.Host)
	}
	return e.devices
}
