package index

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
)

// page is the content of the HTML page for users: wheels as rows, and the axes that
// distinguish them.
type page struct {
	Axes []pageAxis
	Rows []pageRow
}

// pageAxis is an axis with all values of the wheels.
type pageAxis struct {
	Name   string
	Values []string
}

type pageRow struct {
	Record
	Values       []string // axis values, in the order of the axes
	Gate         []gateRow
	Requirements string // address of the requirements file, "" for none
}

type gateRow struct{ Name, Status, Evidence string }

func newPage(all []Record) page {
	values := map[string]map[string]bool{}
	for _, r := range all {
		for name, value := range r.Axes {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value] = true
		}
	}
	var p page
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.Axes = append(p.Axes, pageAxis{name, slices.Sorted(maps.Keys(values[name]))})
	}
	for _, r := range all {
		row := pageRow{Record: r, Requirements: r.requirements()}
		for _, axis := range p.Axes {
			row.Values = append(row.Values, r.Axes[axis.Name])
		}
		for _, name := range slices.Sorted(maps.Keys(r.Gates)) {
			row.Gate = append(row.Gate, gateRow{name, r.Gates[name], r.Evidence[name]})
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

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

// requirements returns the address of the cell's requirements file from the root of the
// index, or "" if the cell has none. The file pins the packages tested with the wheel.
func (r Record) requirements() string {
	want := r.Cell + lock.RequirementsEnd
	if !slices.ContainsFunc(r.Beside, func(f File) bool { return f.Path == want }) {
		return ""
	}
	return r.hrefOf(want, "")
}

// Checked returns the line for checking the file with sha256sum.
func (r Record) Checked() string { return r.SHA256 + "  " + r.Filename }

// Statements lists the files beside the wheel about its build and its tests, with
// addresses from the root of the index.
func (r pageRow) Statements() []statement {
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

// ChannelList returns the channels, separated by commas.
func (r pageRow) ChannelList() string { return strings.Join(r.Channels, ", ") }
