package index

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/base/size"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// A listed record is one on the page for users.
type listed struct {
	Record
	Apart []string // the axes by which it differs from others of its project, with its values
}

// apart returns the axes that not all records of a project share, with the values of one.
func apart(r Record, all []Record) (axes []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Axes)) {
		if slices.ContainsFunc(all, func(other Record) bool { return other.Project == r.Project && other.Axes[name] != r.Axes[name] }) {
			axes = append(axes, name+" "+r.Axes[name])
		}
	}
	return axes
}

// SizeText returns the size for people.
func (r Record) SizeText() string { return size.Text(r.Size) }

// Passed returns the number of passed gates and the number of all gates.
func (r Record) Passed() string {
	passed := 0
	for _, status := range r.Gates {
		if status == "pass" {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, len(r.Gates))
}

// Pin returns the requirement for exactly this wheel, without its digest.
func (r Record) Pin() string { return r.file().Pin() }

// Requirement returns the line of a requirements file for exactly this wheel.
func (r Record) Requirement() string { return r.file().Exact() }

func (r Record) file() pypi.File {
	return pypi.File{Project: r.Project, Version: r.Version, SHA256: r.SHA256}
}

// Requirements returns the address of the cell's requirements file from the root of the
// index, or "" if the cell has none. The file pins the packages tested with the wheel.
func (r Record) Requirements() string {
	want := r.Cell + lock.RequirementsEnd
	if !slices.ContainsFunc(r.Beside, func(f File) bool { return f.Path == want }) {
		return ""
	}
	return r.hrefOf(want, "")
}

// Statements lists the files beside the wheel about its build and its tests, with
// addresses from the root of the index.
func (r Record) Statements() []statement {
	var all []statement
	for _, f := range r.Beside {
		if strings.HasPrefix(f.Path, r.Filename+".") {
			all = append(all, statement{path.Base(f.Path), r.hrefOf(f.Path, "")})
		}
	}
	return all
}

// A statement is one of these files.
type statement struct{ Name, Href string }
