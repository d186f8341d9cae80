package nccllog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Row is a line of text about a run, with its subject.
type Row struct{ About, Text string }

// Rows describes a run: its connections, and the settings from the environment.
func (e Evidence) Rows() []Row {
	var rows []Row
	row := func(about, format string, args ...any) {
		rows = append(rows, Row{about, fmt.Sprintf(format, args...)})
	}
	if len(e.Networks) > 0 {
		row("network", "%s", strings.Join(e.Networks, ", "))
	}
	for _, way := range slices.Sorted(maps.Keys(e.Connections)) {
		row("connected", "%d via %s (%s)", e.Connections[way], way, TransportOf(way))
	}
	for _, s := range e.Settings {
		row("set", "%s=%s", s.Name, s.Value)
	}
	for _, text := range e.Reasons {
		row("says", "%s", text)
	}
	for _, text := range e.Warnings {
		row("warns", "%s", text)
	}
	if e.Cut {
		row("cut", "the log exceeds the limit, or holds a second library")
	}
	return rows
}

// Speaker returns the name and version of the library that wrote the log.
func (e Evidence) Speaker() string {
	if e.Library == "" {
		return "NCCL or RCCL; the line with its version is missing"
	}
	return e.Library + " " + e.Version
}
