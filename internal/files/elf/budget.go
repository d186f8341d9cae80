package elf

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// A Budget limits the work and the memory spent on the libraries of one file, over all
// libraries and all calls. A file over the limit is an error, never a partial result.
//
// A unit of work is about a nanosecond. Reading a byte costs one unit, and slower work
// costs more (see the weights). All functions of this package, applied to
// the library of NCCL 2.32.3 in a wheel of 352 MB, used 1.7 G of the wheel's 46 G units
// and 9 s on one core. A hostile wheel of any size uses up its free work in 3 to 5 s
// (2026-11-22).
type Budget struct {
	size   int64 // bytes of the file
	work   int64 // units left
	memory uint64
	unseen int64 // units since the last check of the context
}

// Limits of a budget, in units of work and bytes of memory.
const (
	freeWork    = 4 << 30
	workPerByte = 128

	freeMemory    = 128 << 20
	memoryPerByte = 8
	maxMemory     = 2 << 30
)

// Weights of work, measured on one core of 2.9 GHz.
const (
	weighText     = 8     // per byte searched for texts
	weighUnpacked = 8     // per byte of an unpacked stream
	weighCode     = 16    // per byte of machine code
	weighName     = 8     // per byte of a symbol's name
	weighRecord   = 64    // per symbol, version or section
	weighVisit    = 512   // per text, for the visitor's pattern match
	weighObject   = 2048  // per object or container of device code
	weighDecoder  = 16384 // per unpacked stream
	lookAfterWork = 1 << 18
)

// NewBudget returns the budget of a file of size bytes. Size counts the bytes on disk,
// before unpacking.
func NewBudget(size int64) *Budget {
	size = max(0, min(size, 1<<40))
	return &Budget{
		size: size, work: freeWork + workPerByte*size,
		memory: min(maxMemory, freeMemory+memoryPerByte*uint64(size)),
	}
}

// Reader returns a reader for one library of the file. The functions of this package
// charge their work on it to the budget, and stop when ctx ends.
func (b *Budget) Reader(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	return &meter{r: r, budget: b, stopped: ctx.Err}
}

// Bounded returns a reader for a library in a file of its own. Its budget follows from
// the size of r.
func Bounded(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	size := int64(0)
	switch of := r.(type) {
	case interface{ Size() int64 }:
		size = of.Size()
	case interface{ Stat() (fs.FileInfo, error) }:
		if info, err := of.Stat(); err == nil {
			size = info.Size()
		}
	}
	return NewBudget(size).Reader(ctx, r)
}

// meter reads a library and charges the work to a budget.
type meter struct {
	r       io.ReaderAt
	budget  *Budget
	stopped func() error
	held    uint64 // bytes of memory in use
}

// metered returns a meter for one call. A reader without a budget gets a new one.
func metered(r io.ReaderAt) *meter {
	m, ok := r.(*meter)
	if !ok {
		return metered(Bounded(context.Background(), r))
	}
	return m.over(m.r)
}

// over returns a meter for r with the same budget and no memory in use.
func (m *meter) over(r io.ReaderAt) *meter {
	return &meter{r: r, budget: m.budget, stopped: m.stopped}
}

// ReadAt reads, and charges len(p) bytes.
func (m *meter) ReadAt(p []byte, off int64) (int, error) {
	if err := m.spend(len(p), 1); err != nil {
		return 0, err
	}
	return m.r.ReadAt(p, off)
}

// spend charges n times weight units of work.
func (m *meter) spend(n, weight int) error {
	b := m.budget
	cost := int64(n) * int64(weight)
	b.work, b.unseen = b.work-cost, b.unseen+cost
	if b.unseen > lookAfterWork {
		b.unseen = 0
		if err := m.stopped(); err != nil {
			return err
		}
	}
	if b.work < 0 {
		return fmt.Errorf("reading it exceeds the work for a file of %d bytes (%d units): it unpacks, or points to the same bytes, too often",
			b.size, freeWork+workPerByte*b.size)
	}
	return nil
}

// hold charges n bytes of memory.
func (m *meter) hold(n uint64) error {
	if n > m.budget.memory || m.held > m.budget.memory-n {
		return fmt.Errorf("reading it exceeds the memory for a file of %d bytes (%d bytes)", m.budget.size, m.budget.memory)
	}
	m.held += n
	return nil
}

// weighed charges every byte read with a weight. It serves for the output of decoders,
// and for bytes with a higher cost than reading them.
type weighed struct {
	io.Reader
	meter  *meter
	weight int
}

func (w weighed) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if spent := w.meter.spend(n, w.weight); spent != nil {
		return n, spent
	}
	return n, err
}
