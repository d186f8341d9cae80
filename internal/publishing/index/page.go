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

// page is what the page for people shows: wheels as rows, and the axes that tell
// them apart.
type page struct {
	Axes []pageAxis
	Rows []pageRow
}

// pageAxis is an axis with every value that a wheel has.
type pageAxis struct {
	Name   string
	Values []string
}

type pageRow struct {
	Record
	Values       []string // of the axes, in their order
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

// Passed says how many gates passed, of all.
func (r Record) Passed() string {
	passed := 0
	for _, status := range r.Gates {
		if status == "pass" {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, len(r.Gates))
}

// Requirement returns the line of a requirements file that is this wheel and no
// other.
func (r Record) Requirement() string {
	return pypi.File{Project: r.Project, Version: r.Version, SHA256: r.SHA256}.Requirement()
}

// requirements returns the requirements file of the cell, which pins what the wheel was
// tested with, by its address from the root of the index; "" where the cell has none.
func (r Record) requirements() string {
	want := r.Cell + lock.RequirementsEnd
	if !slices.ContainsFunc(r.Beside, func(f File) bool { return f.Path == want }) {
		return ""
	}
	return r.hrefOf(want, "")
}

// Checked returns the line by which sha256sum checks the file.
func (r Record) Checked() string { return r.SHA256 + "  " + r.Filename }

// Statements are the files beside the wheel that say how it was made and what was
// found, by their addresses from the root of the index.
func (r pageRow) Statements() []statement {
	var all []statement
	for _, f := range r.Beside {
		if strings.HasPrefix(f.Path, r.Filename+".") {
			all = append(all, statement{path.Base(f.Path), r.hrefOf(f.Path, "")})
		}
	}
	return all
}

// A statement is one such file.
type statement struct{ Name, Href string }

// ChannelList names the channels.
func (r pageRow) ChannelList() string { return strings.Join(r.Channels, ", ") }
