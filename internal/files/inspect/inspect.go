// Package inspect says what a finished file is: a wheel or a library, for which
// framework, GPUs, collectives and fabric. It goes by the bytes alone, so that
// it serves for files whose makers said nothing, or something else.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// A Report is what one file is.
type Report struct {
	Kind  string `json:"kind"`  // wheel or library
	Facts []Fact `json:"facts"` // in the order of [Names]
}

// A Fact is one thing that the bytes say. Values is never empty: where there is
// nothing of a kind it is none, and where the bytes do not say it is unknown.
type Fact struct {
	Name    string   `json:"name"`
	Values  []string `json:"values"`
	Because []string `json:"because"` // what was seen, and in which file
	// Claim is what the version's local part says of it, such as 5.7 of
	// 0.28.1+rocm5.7: somebody's word, and more exact than the bytes.
	Claim string `json:"claim,omitempty"`
}

// The values of a fact that is no name or number.
const (
	None    = "none"
	Unknown = "unknown"
)

// Fact returns the fact of that name.
func (r Report) Fact(name string) (Fact, bool) {
	i := slices.IndexFunc(r.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return Fact{}, false
	}
	return r.Facts[i], true
}

// Names lists the facts; a library has no tags.
func Names() []string {
	names := []string{"name", "version", "python", "platform", "packages", "programs", "data"}
	for _, f := range features {
		names = append(names, f.name)
	}
	return names
}

// File inspects the file at a path. A file that is neither a wheel nor a shared
// library is an error, and so is one that contradicts itself: half of the bytes
// say nothing of the whole. What it costs is bounded by the file's size.
func File(ctx context.Context, file string) (Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := f.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return Report{}, err
	}
	switch {
	case elf.Is(f):
		return library(ctx, path.Base(file), f)
	case strings.HasPrefix(string(magic), "PK"):
		return wheelFile(ctx, file)
	}
	return Report{}, fmt.Errorf("%s is neither a wheel nor a shared library", file)
}

func library(ctx context.Context, name string, f *os.File) (Report, error) {
	seen := sight{}
	soname, err := seen.add(ctx, name, elf.Bounded(ctx, f))
	if err != nil {
		return Report{}, fmt.Errorf("reading %s: %w", name, err)
	}
	facts := []Fact{{Name: "name", Values: orUnknown(soname), Because: []string{"DT_SONAME"}}}
	if len(seen.versions) > 0 {
		facts = append(facts, Fact{Name: "version", Values: unique(seen.versions), Because: []string{"its version string"}})
	}
	return Report{Kind: "library", Facts: append(facts, seen.facts("")...)}, nil
}

func wheelFile(ctx context.Context, file string) (Report, error) {
	w, err := wheel.Open(file)
	if err != nil {
		return Report{}, err
	}
	defer w.Close()
	seen := sight{budget: elf.NewBudget(w.Size())}
	var pythons, platforms []string
	for _, tag := range w.Name.Tags() {
		python, platform, _ := strings.Cut(tag, "-")
		_, platform, _ = strings.Cut(platform, "-")
		pythons, platforms = append(pythons, python), append(platforms, platform)
	}
	for _, f := range w.Files {
		if err := seen.member(ctx, w, f.Name); err != nil {
			return Report{}, fmt.Errorf("reading %s: %w", f.Name, err)
		}
	}
	facts := []Fact{
		{Name: "name", Values: []string{w.Name.Distribution}, Because: []string{"the file name"}},
		{Name: "version", Values: []string{w.Name.Version}, Because: []string{"the file name"}},
		{Name: "python", Values: unique(pythons), Because: []string{"the tags"}},
		{Name: "platform", Values: unique(platforms), Because: []string{"the tags"}},
	}
	places := w.Installs()
	for _, p := range []struct {
		name, where string
		values      []string
	}{
		{"packages", "installed among the packages of the interpreter", places.Packages},
		{"programs", "installed among its programs", places.Programs},
		{"data", "installed below its prefix", places.Data},
	} {
		fact := Fact{Name: p.name, Values: p.values, Because: []string{p.where}}
		if len(p.values) == 0 {
			fact.Values, fact.Because = []string{None}, []string{"nothing is " + p.where}
		}
		facts = append(facts, fact)
	}
	_, local, _ := strings.Cut(w.Name.Version, "+")
	return Report{Kind: "wheel", Facts: append(facts, seen.facts(local)...)}, nil
}

// sight is what was seen of all features: value, and the places where it was.
type sight struct {
	of       map[string]map[string][]string
	files    int
	budget   *elf.Budget
	versions []string // of NCCL or RCCL
}

// member adds a library of the wheel; other files, and linker scripts, say
// nothing.
func (s *sight) member(ctx context.Context, w *wheel.Wheel, name string) error {
	if !wheel.IsLibrary(name) {
		return nil
	}
	r, err := w.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	if !elf.Is(r) {
		return nil
	}
	_, err = s.add(ctx, name, s.budget.Reader(ctx, r))
	return err
}

// add looks at one library and returns its soname.
func (s *sight) add(ctx context.Context, name string, r io.ReaderAt) (string, error) {
	lib, err := look(name, r)
	if err != nil {
		return "", err
	}
	s.files++
	if s.of == nil {
		s.of = map[string]map[string][]string{}
	}
	for _, f := range features {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		for value, because := range f.in(lib) {
			if err := s.note(f.name, value, name+" "+because); err != nil {
				return "", err
			}
		}
	}
	s.versions = append(s.versions, lib.versions()...)
	return lib.Soname, nil
}

// Bounds of what is told of one fact. Real wheels have ten values and a hundred
// libraries; hostile ones have names of 64 KiB.
const (
	maxValues  = 1000
	maxBecause = 1000
	maxWords   = 1000 // bytes
)

// note adds what a library says of one fact.
func (s *sight) note(fact, value, because string) error {
	if s.of[fact] == nil {
		s.of[fact] = map[string][]string{}
	}
	value = value[:min(len(value), maxWords)]
	if known := s.of[fact][value]; len(known) < maxBecause {
		s.of[fact][value] = append(known, strings.Clone(because[:min(len(because), maxWords)]))
	}
	if len(s.of[fact]) > maxValues {
		return fmt.Errorf("more than %d values of %s", maxValues, fact)
	}
	return nil
}

// facts returns every feature. A lower bound, as of glibc, is the highest that
// any library has.
func (s *sight) facts(local string) []Fact {
	var facts []Fact
	for _, f := range features {
		seen := s.of[f.name]
		values := slices.Sorted(maps.Keys(seen))
		if f.floor && len(values) > 1 {
			values = []string{slices.MaxFunc(values, elf.CompareVersions)}
		}
		fact := Fact{Name: f.name, Values: values, Claim: claim(local, f.name)}
		for _, v := range values {
			fact.Because = append(fact.Because, seen[v]...)
		}
		switch {
		case len(values) > 0:
		case s.files == 0:
			fact.Values, fact.Because = []string{None}, []string{"there is no library"}
		default:
			fact.Values, fact.Because = []string{None}, []string{fmt.Sprintf("%s in %s", f.absent, counted(s.files))}
		}
		facts = append(facts, fact)
	}
	return facts
}

// claim finds what a local version says of a name: 5.7 of rocm5.7.tf2.13.0.
// Parts that begin with a digit belong to the part before.
func claim(local, name string) string {
	var value []string
	found := false
	for _, part := range strings.FieldsFunc(local, func(r rune) bool { return r == '.' || r == '-' || r == '_' }) {
		if part[0] < '0' || part[0] > '9' {
			var rest string
			rest, found = strings.CutPrefix(part, name)
			found = found && rest != "" && len(value) == 0
			part = rest
		}
		if found {
			value = append(value, part)
		}
	}
	return strings.Join(value, ".")
}

func unique(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

func orUnknown(value string) []string {
	if value == "" {
		value = Unknown
	}
	return []string{value}
}

func counted(libraries int) string {
	if libraries == 1 {
		return "the only library"
	}
	return fmt.Sprintf("%d libraries", libraries)
}
