package gate

import (
	"errors"
	"fmt"

	"builder/internal/wheel"
)

// Unpacked keeps the libraries of one wheel between gates, so that each is
// unpacked once and all gates look at the same bytes. Close frees them. A nil
// one keeps nothing.
type Unpacked struct{ members map[string]wheel.Member }

// NewUnpacked returns one that holds no library yet.
func NewUnpacked() *Unpacked { return &Unpacked{map[string]wheel.Member{}} }

// read gives a member of the wheel to a function.
func (u *Unpacked) read(w *wheel.Wheel, name string, read func(wheel.Member) error) error {
	if u == nil {
		r, err := w.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(read(r), r.Close())
	}
	r, ok := u.members[name]
	if !ok {
		var err error
		if r, err = w.Open(name); err != nil {
			return err
		}
		u.members[name] = r
	}
	return read(r)
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
