package image

import (
	"errors"
	"maps"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/subst"
)

// members returns the images of one entry of a file: the entry itself, or one image for
// each row of For. A fact, a digest or a package left empty by a row is not stated.
func (i Image) members() ([]Image, error) {
	if len(i.For) == 0 {
		return []Image{i}, nil
	}
	var all []Image
	var errs []error
	for _, row := range i.For {
		member, err := i.member(row)
		errs = append(errs, err, unused(i, row))
		all = append(all, member)
	}
	return all, errors.Join(errs...)
}

// member replaces names in the texts of i with the values of a row.
func (i Image) member(row map[string]string) (Image, error) {
	m := i
	m.For = nil
	m.Env, m.Provides = maps.Clone(i.Env), map[string]Fact{}
	var errs []error
	set := func(text *string) {
		value, err := subst.Expand(*text, row)
		*text, errs = value, append(errs, err)
	}
	for _, text := range []*string{&m.Name, &m.Summary, &m.Registry, &m.Digest, &m.Python, &m.Setup} {
		set(text)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		text := m.Env[name]
		set(&text)
		m.Env[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(i.Provides)) {
		fact := i.Provides[name]
		set(&fact.Is)
		set(&fact.Probe)
		if fact.Is != "" {
			m.Provides[name] = fact
		}
	}
	if i.Debian != nil {
		debian := *i.Debian
		debian.Packages, debian.Unpack, debian.Suites = slices.Clone(i.Debian.Packages), slices.Clone(i.Debian.Unpack), slices.Clone(i.Debian.Suites)
		for n := range debian.Suites {
			suite := &debian.Suites[n]
			suite.Components = slices.Clone(suite.Components)
			set(&suite.Name)
			for c := range suite.Components {
				set(&suite.Components[c])
			}
		}
		for _, names := range []*[]string{&debian.Packages, &debian.Unpack} {
			for n := range *names {
				set(&(*names)[n])
			}
			*names = slices.DeleteFunc(*names, func(name string) bool { return name == "" })
		}
		m.Debian = &debian
	}
	return m, errors.Join(errs...)
}

// unused returns an error for each value of a row that no text of the entry names,
// because it is probably a typing error.
func unused(i Image, row map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(row)) {
		fewer := maps.Clone(row)
		delete(fewer, name)
		if _, err := i.member(fewer); err == nil {
			errs = append(errs, diag.Errorf(diag.Usage, "no text uses {{%s}} of the row", name))
		}
	}
	return errors.Join(errs...)
}
