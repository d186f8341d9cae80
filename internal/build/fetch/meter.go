package fetch

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// meter sums the bytes of all files.
type meter struct {
	mu    sync.Mutex
	out   io.Writer
	done  atomic.Int64
	total int64
	files int
	all   int
	share int64 // percentage in the last line written
}

func newMeter(wants []want, out io.Writer) *meter {
	m := &meter{out: out, all: len(wants)}
	for _, w := range wants {
		m.total += w.blob.Size
	}
	return m
}

// file returns the progress callback of one file, which writes a line for each full percent
// of all files.
func (m *meter) file() func(done, total int64) {
	var last int64
	return func(done, _ int64) {
		m.done.Add(done - last)
		last = done
		m.mu.Lock()
		defer m.mu.Unlock()
		if share := m.done.Load() * 100 / max(m.total, 1); share != m.share {
			m.share = share
			m.line()
		}
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
