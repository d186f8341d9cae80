// Package inspect reports what a finished wheel or library contains: framework, GPU
// targets, collectives and fabric. It reads only the bytes of the file, so it also
// works for files with missing or wrong metadata.
package inspect

import (
	"cmp"
	"context"
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

// A Report lists the facts of one file.
type Report struct {
	Kind  string `json:"kind"`  // wheel or library
	Facts []Fact `json:"facts"` // in the order of [Names]
}

// A Fact is one property read from the bytes. Values is never empty: it holds [None] if
// the property is absent, and [Unknown] if the bytes do not decide.
type Fact struct {
	Name    string   `json:"name"`
	Values  []string `json:"values"`
	Because []string `json:"because"` // the evidence, with its file
	// Claim is the value in the local part of the wheel's version, such as 5.7 in
	// 0.28.1+rocm5.7. It is more exact than the bytes, but unproven.
	Claim string `json:"claim,omitempty"`
}

// Values of a fact without a name or number.
const (
	None    = "none"
	Unknown = "unknown"
)

// Fact returns the fact with the given name.
func (r Report) Fact(name string) (Fact, bool) {
	i := slices.IndexFunc(r.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return Fact{}, false
	}
	return r.Facts[i], true
}

// Names lists the names of all facts. A library has no tags.
func Names() []string {
	names := []string{"name", "version", "python", "platform", "packages", "programs", "data"}
	for _, f := range features {
		names = append(names, f.name)
	}
	return names
}

// File inspects the file at a path. It returns an error for a file of another type and
// for one that contradicts itself, because a partly read file gives no reliable facts.
// The file's size limits the work.
func File(ctx context.Context, file string) (Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	switch {
	case elf.Is(f):
		return library(ctx, path.Base(file), f)
	case isZIP(f), path.Ext(file) == ".whl": // the error about a damaged wheel says more
		return wheelFile(ctx, file)
	}
	return Report{}, fmt.Errorf("%s is not a wheel or a shared library", file)
}

// Takes reports whether the first bytes of a file are those of a type that [File]
// inspects.
func Takes(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return elf.Is(f) || isZIP(f)
}

func isZIP(r io.ReaderAt) bool {
	magic := make([]byte, 2)
	_, err := r.ReadAt(magic, 0)
	return err == nil && string(magic) == "PK"
}

func library(ctx context.Context, name string, f *os.File) (Report, error) {
	seen := sight{}
	soname, err := seen.add(ctx, name, elf.Bounded(ctx, f))
	if err != nil {
		return Report{Kind: "library"}, fmt.Errorf("reading %s: %w", name, err)
	}
	facts := []Fact{{Name: "name", Values: []string{cmp.Or(soname, Unknown)}, Because: []string{"DT_SONAME"}}}
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
	seen := sight{budget: elf.NewBudget(w.Size)}
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
			fact.Values, fact.Because = []string{None}, []string{"nothing " + p.where}
		}
		facts = append(facts, fact)
	}
	_, local, _ := strings.Cut(w.Name.Version, "+")
	return Report{Kind: "wheel", Facts: append(facts, seen.facts(local)...)}, nil
}

// sight collects the values of all features, and for each value the places where it was
// found.
type sight struct {
	of       map[string]map[string][]string
	files    int
	budget   *elf.Budget
	versions []string // of NCCL or RCCL
}

// member adds a library of the wheel. It skips other files, and linker scripts named
// like libraries.
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

// add reads one library and returns its soname.
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
		for value, because := range lib.values(f.name) {
			if err := s.note(f.name, value, name+" "+because); err != nil {
				return "", err
			}
		}
	}
	s.versions = append(s.versions, versionsIn(lib.at[holds])...)
	return lib.Soname, nil
}

// Limits per fact. Real wheels have ten values and a hundred libraries. Hostile ones
// have names of 64 KiB.
const (
	maxValues  = 1000
	maxBecause = 1000
	maxWords   = 1000 // bytes
)

// note adds a value and its evidence to a fact.
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

// facts returns every feature. A lower bound, such as glibc's, is the highest bound of
// all libraries.
func (s *sight) facts(local string) []Fact {
	var facts []Fact
	for _, f := range features {
		seen := s.of[f.name]
		values := slices.Sorted(maps.Keys(seen))
		if f.name == floor && len(values) > 1 {
			values = []string{slices.MaxFunc(values, elf.CompareVersions)}
		}
		fact := Fact{Name: f.name, Values: values, Claim: claim(local, f.name)}
		for _, v := range values {
			fact.Because = append(fact.Because, seen[v]...)
		}
		switch {
		case len(values) > 0:
		case s.files == 0:
			fact.Values, fact.Because = []string{None}, []string{"no library"}
		default:
			fact.Values, fact.Because = []string{None}, []string{fmt.Sprintf("%s in %s", f.absent, counted(s.files))}
		}
		facts = append(facts, fact)
	}
	return facts
}

// claim returns the value of a name in a local version: 5.7 for rocm in
// rocm5.7.tf2.13.0. Parts that begin with a digit belong to the preceding part.
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

func counted(libraries int) string {
	if libraries == 1 {
		return "the only library"
	}
	return fmt.Sprintf("%d libraries", libraries)
}
