// Package difference names the members in which two builds of a wheel differ. The output
// helps the user to find out why a build is not reproducible. What differs in a member, or
// in a file of another kind, is a question for a tool such as diffoscope.
//
// The package never decides whether two artifacts are the same. Their digests do.
package difference

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"builder/internal/files/wheel"
)

// maxLines limits the output, because a longer one does not help the user.
const maxLines = 40

// OfWheels compares two wheels of one name, and returns one line per difference.
func OfWheels(first, second string) ([]string, error) {
	here, err1 := members(first)
	there, err2 := members(second)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("comparing %s: %w", filepath.Base(first), err)
	}
	all := maps.Clone(here)
	maps.Copy(all, there)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch sum, other := here[name], there[name]; {
		case other == "":
			lines = append(lines, "only the first build made "+name)
		case sum == "":
			lines = append(lines, "only the second build made "+name)
		case sum != other:
			lines = append(lines, name+" differs")
		}
	}
	if len(lines) == 0 {
		return []string{"the members are the same: their times, modes, order or compression differ"}, nil
	}
	if len(lines) > maxLines {
		lines = append(lines[:maxLines], fmt.Sprintf("and %d more", len(lines)-maxLines))
	}
	return lines, nil
}

// members returns the sha256 of each member. It leaves out RECORD, which follows from the
// other members.
func members(file string) (map[string]string, error) {
	w, err := wheel.Open(file)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	all := map[string]string{}
	for _, f := range w.Files {
		if f.Name == w.DistInfo+"/RECORD" {
			continue
		}
		if all[f.Name], err = w.SHA256(f.Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}
