package fetch

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// A Counter is a progress writer that also receives byte counts.
type Counter interface {
	// Bytes receives the number of bytes fetched and the total. Done decreases if a
	// transfer starts again.
	Bytes(done, total int64)
}

// meter sums the bytes of all files.
type meter struct {
	mu      sync.Mutex
	out     io.Writer
	counter Counter // nil if out counts no bytes
	done    atomic.Int64
	total   int64
	files   int
	all     int
	share   int64 // percentage in the last line written
}

func newMeter(wants []want, out io.Writer) *meter {
	m := &meter{out: out, all: len(wants)}
	m.counter, _ = out.(Counter)
	for _, w := range wants {
		m.total += w.blob.Size
	}
	return m
}

// file returns the progress callback of one file.
func (m *meter) file() func(done, total int64) {
	var last int64
	return func(done, _ int64) {
		m.done.Add(done - last)
		last = done
		m.show()
	}
}

// show writes a line for each full percent.
func (m *meter) show() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counter != nil {
		m.counter.Bytes(m.done.Load(), m.total)
	}
	if share := m.done.Load() * 100 / max(m.total, 1); share != m.share {
		m.share = share
		m.line()
	}
}

func (m *meter) line() {
	fmt.Fprintf(m.out, "%d of %d MB, %d of %d files\n", m.done.Load()/1e6, m.total/1e6, m.files, m.all)
}

// arrived counts a fetched file, or writes its error.
func (m *meter) arrived(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		fmt.Fprintln(m.out, err)
		return
	}
	if m.files++; m.files == m.all {
		m.line()
	}
}
