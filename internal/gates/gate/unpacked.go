package gate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// Unpacked keeps the libraries of one wheel between gates, so that each is
// unpacked once, all gates look at the same bytes, and what they cost is bounded
// for the wheel as a whole. Close frees them. A nil one keeps nothing.
type Unpacked struct {
	members map[string]wheel.Member
	budget  *elf.Budget // of the wheel, over all gates
}

// NewUnpacked returns one that holds no library yet.
func NewUnpacked() *Unpacked { return &Unpacked{members: map[string]wheel.Member{}} }

// read gives a member of the wheel to a function. What that costs counts.
func (u *Unpacked) read(ctx context.Context, w *wheel.Wheel, name string, read func(io.ReaderAt) error) error {
	if u == nil {
		u = NewUnpacked()
		defer u.Close()
	}
	if u.budget == nil {
		u.budget = elf.NewBudget(w.Size())
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

// Close frees what is kept.
func (u *Unpacked) Close() error {
	var faults []error
	for name, r := range u.members {
		if err := r.Close(); err != nil {
			faults = append(faults, fmt.Errorf("closing %s: %w", name, err))
		}
	}
	clear(u.members)
	return errors.Join(faults...)
}
