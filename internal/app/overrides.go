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
	overrides := map[string][]string{}
	for _, s := range settings {
		key, place, ok := strings.Cut(s, "=")
		name, isSource := strings.CutPrefix(key, "source.")
		if !ok || !isSource || name == "" || place == "" {
			return nil, diag.Errorf(diag.Usage, "--set: %q is not source.NAME=PATH or source.NAME=URL", s)
		}
		if !strings.Contains(place, "://") {
			abs, err := filepath.Abs(place)
			if err != nil {
				return nil, err
			}
			if _, err := os.Stat(abs); err != nil {
				return nil, diag.Errorf(diag.Usage, "--set source.%s: %w", name, err).WithHint("name a file, a directory or a URL that has the source")
			}
			place = abs
		}
		overrides[name] = append(overrides[name], place)
	}
	return overrides, nil
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
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
