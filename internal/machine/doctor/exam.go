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

	gpus    *gpuTools
	devices *fabric.Tree
	linker  *linkerCache
	python  *[]string // package directories of the default python3
}

// A linkerCache holds the answer of ldconfig.
type linkerCache struct {
	paths map[string][]string
	err   error
}

// A gpuTools holds the answer of the vendors' tools.
type gpuTools struct {
	gpu.Host
	err error
}

// tools runs the vendors' tools.
func (e *exam) tools(ctx context.Context) gpuTools {
	if e.gpus == nil {
		e.gpus = &gpuTools{}
		e.gpus.Host, e.gpus.err = gpu.Find(ctx, e.Run)
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
