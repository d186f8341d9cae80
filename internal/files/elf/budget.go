package elf

import (
	"context"
	"fmt"
	"io"
	"io/fs"
)

// A Budget bounds the work and the memory that the libraries of one file may
// cost, however many they are and however often they are read. A file that takes
// more is not read to its end, which is an error and never a shorter answer.
//
// The unit of work is about a nanosecond: a byte that is read or unpacked costs
// one, what takes longer costs more (see the weights). All questions of this
// package about the library of NCCL 2.32.3, in a wheel of 352 MB, took 1.7 G of
// the wheel's 46 G units and 9 s on one core; a wheel that gives out its free
// work, whatever its size, takes 3 to 5 s (2026-11-22).
type Budget struct {
	size   int64 // of the file
	work   int64 // what is left
	memory uint64
	unseen int64 // work since the last look at the context
}

// Limits of a budget.
const (
	freeWork    = 4 << 30
	workPerByte = 128

	freeMemory    = 128 << 20
	memoryPerByte = 8
	maxMemory     = 2 << 30
)

// Weights of work, by measurement on one core of 2.9 GHz.
const (
	weighText     = 8     // a byte that is looked at for texts
	weighCode     = 16    // a byte of machine code
	weighName     = 8     // a byte of a symbol's name
	weighRecord   = 64    // a symbol, a version, a section
	weighVisit    = 512   // a text, for who looks whether it matches
	weighObject   = 2048  // an object of device code, a container of them
	weighDecoder  = 16384 // a stream that is unpacked
	lookAfterWork = 1 << 18
)

// NewBudget returns the budget of a file of that many bytes, packed as it lies
// there.
func NewBudget(size int64) *Budget {
	size = max(0, min(size, 1<<40))
	return &Budget{
		size: size, work: freeWork + workPerByte*size,
		memory: min(maxMemory, freeMemory+memoryPerByte*uint64(size)),
	}
}

// Reader returns a reader of one library of the file. What the functions of this
// package do with it counts, and ends with the context.
func (b *Budget) Reader(ctx context.Context, r io.ReaderAt) io.ReaderAt {
	return &meter{r: r, budget: b, stopped: ctx.Err}
}

// Bounded returns a reader of a library that is a file of its own, with the budget
// of its size.
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

// meter reads a library, and counts.
type meter struct {
	r       io.ReaderAt
	budget  *Budget
	stopped func() error
	held    uint64 // bytes of memory
}

// metered returns the meter of one question. A reader that no budget gave out
// gets one of its own.
func metered(r io.ReaderAt) *meter {
	m, ok := r.(*meter)
	if !ok {
		return metered(Bounded(context.Background(), r))
	}
	return m.over(m.r)
}

// over returns a meter of the same budget that has no memory in use.
func (m *meter) over(r io.ReaderAt) *meter {
	return &meter{r: r, budget: m.budget, stopped: m.stopped}
}

// ReadAt reads, and counts what it was asked for.
func (m *meter) ReadAt(p []byte, off int64) (int, error) {
	if err := m.spend(len(p), 1); err != nil {
		return 0, err
	}
	return m.r.ReadAt(p, off)
}

// spend counts work on n things of a weight.
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
		return fmt.Errorf("reading it takes more work than a file of %d bytes may take (%d units): it unpacks, or points to the same bytes, too often",
			b.size, freeWork+workPerByte*b.size)
	}
	return nil
}

// hold counts memory that the answer needs.
func (m *meter) hold(n uint64) error {
	if n > m.budget.memory || m.held > m.budget.memory-n {
		return fmt.Errorf("reading it takes more memory than a file of %d bytes may take (%d bytes)", m.budget.size, m.budget.memory)
	}
	m.held += n
	return nil
}

// weighed counts what is read at a weight: it comes out of a decoder, or takes
// longer to look at than to read.
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
