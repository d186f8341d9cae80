package doctor

import (
	"context"
	"sync"

	"builder/internal/machine/gpu"
	"builder/internal/machine/host"
)

// An exam is an examination of a host. It reads each fact that several checks share once.
type exam struct {
	host.Host
	work Work

	tools func() (gpu.Host, error) // the answer of the vendors' tools
	pci   func() pciTree           // the tree of PCI devices
}

func newExam(ctx context.Context, h host.Host, w Work) *exam {
	e := &exam{Host: h, work: w}
	e.tools = sync.OnceValues(func() (gpu.Host, error) { return gpu.Find(ctx, e.Run) })
	e.pci = sync.OnceValue(func() pciTree { return readPCI(e.Host) })
	return e
}
