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
	i.For = nil
	m, err := subst.Deep(i, row)
	maps.DeleteFunc(m.Provides, func(_ string, fact Fact) bool { return fact.Is == "" })
	if m.Debian != nil {
		isEmpty := func(name string) bool { return name == "" }
		m.Debian.Packages = slices.DeleteFunc(m.Debian.Packages, isEmpty)
		m.Debian.Unpack = slices.DeleteFunc(m.Debian.Unpack, isEmpty)
	}
	return m, err
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
