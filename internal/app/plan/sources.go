package plan

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/input/oci"
	"builder/internal/input/pypi"
	"builder/internal/plan/assemble"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
)

// Sources configures how names become digests and where files come from.
type Sources struct {
	Locked    bool                // resolve no name
	Offline   bool                // use only the store
	Overrides map[string][]string // --set: other locations of the same digests, by project
	// SourceMirrors are such locations for all recipes; a run need not use them.
	SourceMirrors map[string][]string
	Mirrors       func() []string   // of Debian
	Snapshot      string            // a mirror of snapshot.debian.org
	Maven         func() []string   // addresses of Maven repositories
	Indexes       map[string]string // addresses of Python indexes by the names in recipes
	// Registries are the mirrors of registries with images to build in.
	Registries oci.Mirrors
}

// Fetcher returns the fetcher of the files of entries into a store.
func (s Sources) Fetcher(w *home.Workspace) *fetch.Fetcher {
	return &fetch.Fetcher{
		Store: w.Store, Scratch: w.Scratch, Mirrors: s.Mirrors, Snapshot: s.Snapshot, Maven: s.Maven,
		Overrides: s.Places(), Offline: s.Offline, UV: s.uv(w.Programs),
	}
}

// Assembler returns an assembler that makes entries from the pins of the locks.
func (s Sources) Assembler(cat catalogue.Catalogue, home string) *assemble.Assembler {
	return &assemble.Assembler{Locks: cat.Locks(home), Revision: Revision(), Forbids: s.forbids()}
}

// Resolver returns the resolver of names into pins.
func (s Sources) Resolver(w *home.Workspace) lock.Resolver {
	return lock.Resolver{Scratch: w.Scratch, Mirrors: s.Mirrors, Registries: s.Registries, Overrides: s.Places(), UV: s.uv(w.Programs), Now: time.Now}
}

// uv returns a uv that knows the named indexes.
func (s Sources) uv(programs pypi.Programs) func(context.Context) (pypi.Tool, error) {
	programs.Indexes = s.Indexes
	return programs.UV
}

// forbids returns the flag that forbids resolving names, or "".
func (s Sources) forbids() string {
	switch {
	case s.Locked:
		return "--locked"
	case s.Offline:
		return "--offline"
	}
	return ""
}

// ParseIndexes parses the values NAME=URL of BUILDER_PYTHON_INDEX.
func ParseIndexes(settings []string) (map[string]string, error) {
	places, err := ParsePlaces("BUILDER_PYTHON_INDEX", "", settings)
	indexes := map[string]string{}
	for name, of := range places {
		indexes[name] = of[0]
	}
	return indexes, err
}

// ParsePlaces parses settings PREFIX NAME=PLACE. A place without :// is a path. what
// names the settings in errors.
func ParsePlaces(what, prefix string, settings []string) (map[string][]string, error) {
	places := map[string][]string{}
	for _, s := range settings {
		key, place, ok := strings.Cut(s, "=")
		name, isSource := strings.CutPrefix(key, prefix)
		if !ok || !isSource || name == "" || place == "" {
			return nil, diag.Errorf(diag.Usage, "%s: %q is not %sNAME=PATH or %sNAME=URL", what, s, prefix, prefix)
		}
		if !strings.Contains(place, "://") {
			abs, err := filepath.Abs(place)
			if err != nil {
				return nil, err
			}
			if _, err := os.Stat(abs); err != nil {
				return nil, diag.Errorf(diag.Usage, "%s %s%s: %w", what, prefix, name, err).WithHint("name a file, a directory or a URL that has the source")
			}
			place = abs
		}
		places[name] = append(places[name], place)
	}
	return places, nil
}

// Places returns the places of sources that are tried first: those of --set before
// those of BUILDER_MIRROR_SOURCE.
func (s Sources) Places() map[string][]string {
	all := map[string][]string{}
	for _, places := range []map[string][]string{s.Overrides, s.SourceMirrors} {
		for name, of := range places {
			all[name] = append(all[name], of...)
		}
	}
	return all
}

// Unused returns an error for each --set that no entry uses.
func (s Sources) Unused(entries []lock.Entry) error {
	var known []string
	for _, e := range entries {
		known = append(known, e.Source.Project, e.Tests.Project)
		for _, w := range e.TestWheels {
			known = append(known, w.Project)
		}
		for _, image := range []lock.Image{e.Image, e.Runtime} {
			for _, p := range image.Pin.Packages {
				known = append(known, p.Name)
			}
			if image.CPython != nil {
				known = append(known, "cpython")
			}
			for _, w := range image.Wheels {
				known = append(known, w.Project)
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Overrides)) {
		if slices.Contains(known, name) {
			continue
		}
		err := diag.Errorf(diag.Usage, "--set: no chosen cell reads a source.%s", name)
		if near := diag.Nearest(name, known); near != "" {
			err = err.WithHint("did you mean source.%s?", near)
		} else if len(entries) > 0 {
			err = err.WithHint("the source of %s is source.%s", entries[0].ID, entries[0].Source.Project)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
