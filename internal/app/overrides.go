package app

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
)

// ParseOverrides parses the source.NAME=PLACE arguments of --set.
func ParseOverrides(settings []string) (map[string][]string, error) {
	return parsePlaces("--set", "source.", settings)
}

// ParseSourceMirrors parses the values NAME=PLACE of the key mirror-source.
func ParseSourceMirrors(settings []string) (map[string][]string, error) {
	return parsePlaces("mirror-source", "", settings)
}

// parsePlaces parses settings PREFIX NAME=PLACE. A place without :// is a path. what
// names the settings in errors.
func parsePlaces(what, prefix string, settings []string) (map[string][]string, error) {
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
// those of mirror-source.
func (s Sources) Places() map[string][]string {
	all := map[string][]string{}
	for _, places := range []map[string][]string{s.Overrides, s.SourceMirrors} {
		for name, of := range places {
			all[name] = append(all[name], of...)
		}
	}
	return all
}

// unusedOverrides rejects a --set not used by any cell.
func unusedOverrides(overrides map[string][]string, entries []lock.Entry) error {
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
			for _, w := range image.Wheels {
				known = append(known, w.Project)
			}
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
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
