package nccllog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Row is a line of text about a run, with its subject.
type Row struct{ About, Text string }

// Rows describes a run: the communicators with their connections, and the settings from
// the environment.
func (r *Run) Rows() []Row {
	var rows []Row
	row := func(about, format string, args ...any) {
		rows = append(rows, Row{about, fmt.Sprintf(format, args...)})
	}
	if len(r.Networks) > 0 {
		row("network", "%s", strings.Join(r.Networks, ", "))
	}
	for _, c := range r.Communicators {
		row("communicator", "%s", aboutCommunicator(c))
		for _, way := range slices.Sorted(maps.Keys(c.Connections)) {
			row("  connected", "%d via %s (%s)", c.Connections[way], way, TransportOf(way))
		}
	}
	for _, s := range r.Settings {
		text := s.Name + "=" + s.Value
		if s.Costs != "" {
			text += ": " + s.Costs
		}
		row("set", "%s", text)
	}
	for _, text := range r.Reasons {
		row("says", "%s", text)
	}
	for _, text := range r.Warnings {
		row("warns", "%s", text)
	}
	if r.Cut {
		row("cut", "the log exceeds the limit, or holds a second library")
	}
	return rows
}

// Speaker returns the name and version of the library that wrote the log.
func (r *Run) Speaker() string {
	if r.Library == "" {
		return "NCCL or RCCL; the line with its version is missing"
	}
	return r.Library + " " + r.Version
}

func aboutCommunicator(c Communicator) string {
	parts := []string{}
	if c.ID != "" {
		parts = append(parts, c.ID)
	}
	said := func(n int, noun string) {
		if n > 0 {
			if n > 1 {
				noun += "s"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, noun))
		}
	}
	said(c.Ranks, "rank")
	said(c.Nodes, "host")
	said(c.Channels, "channel")
	if len(parts) == 0 {
		return "the log has no number of ranks"
	}
	return strings.Join(parts, ", ")
}
