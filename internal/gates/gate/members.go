package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sync"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
)

// question is a gate's check of one library of the wheel.
type question func(name string, r io.ReaderAt) (problems, seen []string, err error)

// A choice lists files of a wheel.
type choice func(*wheel.Wheel) ([]string, error)

// members are the files of a wheel. Gates share what is unpacked of them.
type members struct {
	artifact string // path of the wheel
	unpacked *Unpacked
}

// members returns the files of the wheel.
func (s Subject) members() members { return members{s.Artifact, s.Unpacked} }

// each runs a check on the chosen files.
func (m members) each(ctx context.Context, chosen choice, ask question) verdict.Verdict {
	var problems, seen []string
	err := m.read(ctx, chosen, func(name string, r io.ReaderAt) error {
		bad, good, err := ask(name, r)
		problems, seen = append(problems, bad...), append(seen, good...)
		return err
	})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	return verdict.Judge(problems, seen)
}

// read reads the chosen files.
func (m members) read(ctx context.Context, chosen choice, read func(name string, r io.ReaderAt) error) error {
	w, err := wheel.Open(m.artifact)
	if err != nil {
		return err
	}
	defer w.Close()
	names, err := chosen(w)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := m.unpacked.read(ctx, w, name, func(r io.ReaderAt) error { return read(name, r) }); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

// filesLike chooses the files matching the patterns. A pattern without a file is an error,
// because a check of the other files alone would be incomplete.
func filesLike(patterns []string) choice {
	return func(w *wheel.Wheel) (names []string, err error) {
		for _, pattern := range patterns {
			found := match(w, pattern)
			if len(found) == 0 {
				return nil, fmt.Errorf("no file matches %s; read the gate extension-present", pattern)
			}
			names = append(names, found...)
		}
		return names, nil
	}
}

// fileNamed chooses one file.
func fileNamed(name string) choice {
	return func(*wheel.Wheel) ([]string, error) { return []string{name}, nil }
}

// match returns the names of the wheel's files matching the pattern.
func match(w *wheel.Wheel, pattern string) []string {
	var found []string
	for _, f := range w.Files {
		if matches([]string{pattern}, f.Name) {
			found = append(found, f.Name)
		}
	}
	return found
}

// matches reports whether one of the patterns matches a name.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

// librariesOf lists the shared libraries of the wheel.
func librariesOf(w *wheel.Wheel) (names []string) {
	for _, f := range w.Files {
		if wheel.IsLibrary(f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// digestsOf returns the digests of members of a wheel that match a pattern, by path.
func digestsOf(artifact string, patterns ...string) (map[string]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	w, err := wheel.Open(artifact)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	names, err := filesLike(patterns)(w)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, name := range names {
		if digests[name], err = w.SHA256(name); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

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
