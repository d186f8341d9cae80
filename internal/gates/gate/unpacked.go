package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// Unpacked keeps the libraries of one wheel between gates. Each library is unpacked
// once, all gates read the same bytes, and the cost is bounded for the whole wheel.
// Close frees the libraries. A nil Unpacked keeps nothing. One gate reads at a time.
type Unpacked struct {
	mu      sync.Mutex
	members map[string]*os.File
	budget  *elf.Budget // of the wheel, shared by all gates
}

// NewUnpacked returns an empty Unpacked.
func NewUnpacked() *Unpacked {
	return &Unpacked{members: map[string]*os.File{}}
}

// read calls a function with a member of the wheel and charges the cost to the budget.
func (u *Unpacked) read(ctx context.Context, w *wheel.Wheel, name string, read func(io.ReaderAt) error) error {
	if u == nil {
		u = NewUnpacked()
		defer u.Close()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.budget == nil {
		u.budget = elf.NewBudget(w.Size)
	}
	r, ok := u.members[name]
	if !ok {
		var err error
		if r, err = w.Open(ctx, name); err != nil {
			return err
		}
		u.members[name] = r
	}
	return read(u.budget.Reader(ctx, r))
}

// Close frees the libraries.
func (u *Unpacked) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	for name, r := range u.members {
		if err := r.Close(); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", name, err))
		}
	}
	clear(u.members)
	return errors.Join(errs...)
}
