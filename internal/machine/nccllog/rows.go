package nccllog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxRows is the number of rings and trees shown for a communicator. The JSON has all
// of them.
const maxRows = 8

// A Row is a line of text about a run, with its subject.
type Row struct{ About, Text string }

// Rows describes a run: the communicators with their rings, trees and connections, and
// the settings from the environment.
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
		for _, line := range ringLines(c) {
			row("  ring", "%s", line)
		}
		for _, line := range treeLines(c) {
			row("  tree", "%s", line)
		}
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
			parts = append(parts, fmt.Sprintf("%d %s", n, wordFor(n, noun)))
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

// ringLines lists each order of ranks once, with its channels.
func ringLines(c Communicator) []string {
	var orders []string
	channels := map[string][]int{}
	for _, r := range c.Rings {
		text := joinInts(r.Ranks, " ")
		if !r.Whole {
			text += " …"
		}
		if channels[text] == nil {
			orders = append(orders, text)
		}
		channels[text] = append(channels[text], r.Channel)
	}
	return withChannels(orders, channels)
}

// treeLines lists each shape of tree once, with its channels.
func treeLines(c Communicator) []string {
	var shapes []string
	channels := map[string][]int{}
	for _, t := range c.Trees {
		text := shapeOf(t.Up)
		if channels[text] == nil {
			shapes = append(shapes, text)
		}
		channels[text] = append(channels[text], t.Channel)
	}
	return withChannels(shapes, channels)
}

// shapeOf formats a tree as its inner ranks with their children: 0 > 1 2.
func shapeOf(up map[int]int) string {
	below := map[int][]int{}
	for _, rank := range slices.Sorted(maps.Keys(up)) {
		if up[rank] >= 0 {
			below[up[rank]] = append(below[up[rank]], rank)
		}
	}
	var parts []string
	for _, rank := range slices.Sorted(maps.Keys(below)) {
		parts = append(parts, fmt.Sprintf("%d > %s", rank, joinInts(below[rank], " ")))
	}
	if len(parts) == 0 {
		return "one rank"
	}
	return strings.Join(parts, ", ")
}

func withChannels(texts []string, channels map[string][]int) []string {
	var lines []string
	for _, text := range texts[:min(len(texts), maxRows)] {
		lines = append(lines, fmt.Sprintf("%s (%s %s)", text, wordFor(len(channels[text]), "channel"), joinInts(channels[text], " ")))
	}
	if len(texts) > maxRows {
		lines = append(lines, fmt.Sprintf("%d more; --json has all", len(texts)-maxRows))
	}
	return lines
}

func wordFor(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func joinInts(numbers []int, between string) string {
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, between)
}
