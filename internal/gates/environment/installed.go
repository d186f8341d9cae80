package environment

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/files/wheel"
)

// An Installed is an installed distribution.
type Installed struct {
	Project, Version string   // as in METADATA, the name normalised
	Info             string   // its .dist-info directory
	Tags             []string // of its WHEEL, sorted
	wheel.Installation
}

// Find finds a distribution in an environment, named like in [Open]. It reads its
// .dist-info and the RECORD of its neighbours, and no library.
func Find(path, name string) (Installed, error) {
	e := &Environment{Path: path}
	var err error
	if _, e.Site, err = locate(path); err != nil {
		return Installed{}, diag.Errorf(diag.Usage, "%s: %w", path, err).
			WithHint("name a Python interpreter, a virtual environment, or a site-packages directory")
	}
	var names []string
	for _, site := range e.Site {
		if err := e.readDistributions(site); err != nil {
			return Installed{}, diag.Errorf(diag.Gate, "%s: %w", path, err)
		}
		// Python imports from the first directory that has the distribution.
		for _, d := range e.distributions {
			names = append(names, d.name)
			if d.site == site && d.name == wheel.NormalName(name) {
				return e.installed(d)
			}
		}
	}
	return Installed{}, diag.Errorf(diag.Usage, "%s has no distribution %q", path, name).WithHint("%s", diag.DidYouMean(name, names))
}

// installed describes a distribution.
func (e *Environment) installed(d *distribution) (Installed, error) {
	in := Installed{d.name, d.version, d.info, nil, wheel.Installation{Site: d.site, Record: d.files, Others: map[string]bool{}}}
	for _, blind := range e.blind {
		if strings.HasPrefix(blind, d.info+"/") {
			return in, diag.Errorf(diag.Gate, "%s", blind)
		}
	}
	for _, other := range e.distributions {
		switch {
		case other == d || other.site != d.site:
		case other.name == d.name:
			return in, diag.Errorf(diag.Gate, "%s has %s and %s: Python finds either", d.site, filepath.Base(d.info), filepath.Base(other.info)).
				WithHint("reinstall it")
		default:
			for _, l := range other.files {
				in.Others[l.Path] = true
			}
		}
	}
	text, err := regular.ReadFollowed(filepath.Join(d.info, "WHEEL"), maxRecord)
	if errors.Is(err, fs.ErrNotExist) { // it was not installed from a wheel, or the file is missing
		return in, nil
	}
	var header wheel.Header
	if err == nil {
		header, err = wheel.ParseHeader(text)
	}
	if err != nil {
		return in, diag.Errorf(diag.Gate, "%s: %w", filepath.Join(d.info, "WHEEL"), err)
	}
	in.Tags = slices.Compact(slices.Sorted(slices.Values(header.Values("Tag"))))
	return in, nil
}
