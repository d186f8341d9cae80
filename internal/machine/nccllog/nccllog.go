// Package nccllog reads the logs of NCCL and RCCL with NCCL_DEBUG=INFO. They show which
// library ran, which transports its channels used, and why it did not use better ones.
//
// A collective that falls back to sockets or host memory is correct but slow, and
// prints no error. Only the log shows it. The parser knows the lines of NCCL 2.18 to
// 2.30 and of RCCL (src/init.cc, src/transport, src/graph/paths.cc). It ignores other
// lines and limits the data it keeps. [Parse] reads one complete run. [Survey] reads the
// log of a job, of any size, and reports omissions. Package nccltests reads the output of
// nccl-tests.
package nccllog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MaxLog limits the logs of all ranks of a run, in bytes. A rank logs about 200 KB.
const MaxLog = 64 << 20

// Limits of the parser.
const (
	maxPaths    = 4096 // different transports of connections
	maxLines    = 64   // reasons and warnings, each
	maxSettings = 256
	maxText     = 400 // characters per line
)

// Evidence is the content of a log. Several processes may have written to it.
type Evidence struct {
	Library     string         `json:"library"`       // NCCL or RCCL, empty if the log does not name it
	Version     string         `json:"version"`       // as in the log: 2.29.7+cuda13.0
	Networks    []string       `json:"networks"`      // IB, Socket or the name of a plugin
	Connections map[string]int `json:"connections"`   // number by transport: P2P/CUMEM, SHM, NET/IB/0/GDRDMA
	NVLS        bool           `json:"nvls"`          // multicast in the NVLink switch was set up
	Settings    []Setting      `json:"settings"`      // from the environment, sorted by name
	Reasons     []string       `json:"reasons"`       // lines on devices found, not found or refused
	Warnings    []string       `json:"warnings"`      // NCCL WARN
	Cut         bool           `json:"cut,omitempty"` // data over the limits, or of a second library, was dropped
}

// A Setting is a variable set in the environment.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parse reads the log of one run. A log over the limits or of two libraries is an error.
func Parse(r io.Reader) (Evidence, error) {
	limited := &io.LimitedReader{R: r, N: MaxLog + 1}
	e, dropped, err := read(limited)
	if limited.N <= 0 {
		err = fmt.Errorf("it exceeds %d bytes", MaxLog)
	}
	if err = cmp.Or(err, dropped); err != nil {
		return Evidence{}, fmt.Errorf("reading the log of NCCL: %w", err)
	}
	return e, nil
}

// Survey reads the log of a job. It marks a log over the limits or of two libraries.
func Survey(r io.Reader) (Evidence, error) {
	e, dropped, err := read(r)
	if err != nil {
		return Evidence{}, fmt.Errorf("reading the log of a run: %w", err)
	}
	e.Cut = dropped != nil
	return e, nil
}

// read reads a log. dropped says which data it left out first.
func read(r io.Reader) (e Evidence, dropped, err error) {
	in := bufio.NewReaderSize(r, 4<<10) // NCCL limits lines to 1 KiB
	e = Evidence{Connections: map[string]int{}}
	settings := map[string]string{}
	for {
		line, err := in.ReadSlice('\n')
		dropped = cmp.Or(dropped, e.line(strings.TrimSpace(string(line)), settings))
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			e.Settings = append(e.Settings, Setting{name, settings[name]})
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return e, dropped, err
	}
}

// Shown reports whether the log contains a run at all.
func (e Evidence) Shown() bool { return e.Library != "" || len(e.Connections) > 0 }

// Said joins what the library logged about its settings and about devices.
func (e Evidence) Said() string {
	var all []string
	for _, s := range e.Settings {
		all = append(all, s.Name+"="+s.Value)
	}
	return cmp.Or(strings.Join(slices.Concat(all, e.Reasons, e.Warnings), "; "), "nothing")
}

var (
	// The suffix of a release candidate is part of the version. RCCL appends the commit
	// after a space, and since 6.3 prints a colon before the version.
	version = regexp.MustCompile(`(?:^(?:(?:\S+[:\]>]|\d{4}-\S+)\s*){0,3}|NCCL INFO )([NR]CCL) version (?:: )?(\S+)`) // behind ranks and times of a launcher
	channel = regexp.MustCompile(`NCCL INFO (?:Channel|CollNet) \d+.* via ((?:P2P|SHM|NET|COLLNET)/.+)`)
	network = regexp.MustCompile(`NCCL INFO Using network (.+)`)
	warning = regexp.MustCompile(`NCCL WARN (.+)`)
	info    = regexp.MustCompile(`NCCL INFO (.+)`)
	nvls    = regexp.MustCompile(`NCCL INFO (?:NVLS comm 0x|Connected NVLS tree)`)
	setting = regexp.MustCompile(`NCCL INFO ((?:NCCL|RCCL|HSA)_[A-Z0-9_]+) set by environment to (.*?)\.?$`)
)

// reasons are the texts of lines about devices that were found, not found or refused.
var reasons = []string{
	"NET/IB : No device", "NET/IB : Using", "NET/IB : GPU Direct", "NET/Socket : Using", "Failed to open lib",
	"GPU Direct RDMA", "GDRDMA not enabled", "P2P is disabled", "Could not enable P2P", "peer query failed",
	"IPC not supported", "NVLS multicast support is not", "Failed to initialize NET", "Failed to initialize any NET",
	"disabling", "iommu",
}

// line adds a line of the log. Of a setting the last value counts. A search for a text
// comes before each expression, because a log can have millions of lines.
func (e *Evidence) line(line string, settings map[string]string) error {
	if !strings.Contains(line, "CCL ") {
		return nil
	}
	switch {
	case strings.Contains(line, " set by environment to ") && setting.MatchString(line):
		m := setting.FindStringSubmatch(line)
		if _, known := settings[m[1]]; known || len(settings) < maxSettings {
			settings[m[1]] = shorten(m[2])
		}
	case strings.Contains(line, "CCL version ") && version.MatchString(line):
		m := version.FindStringSubmatch(line)
		return e.is(m[1], m[2])
	case strings.Contains(line, " via ") && channel.MatchString(line):
		return e.connect(way(channel.FindStringSubmatch(line)[1]))
	case strings.Contains(line, "Using network ") && network.MatchString(line):
		e.Networks = keep(e.Networks, network.FindStringSubmatch(line)[1])
	case strings.Contains(line, "NCCL WARN ") && warning.MatchString(line):
		e.Warnings = keep(e.Warnings, warning.FindStringSubmatch(line)[1])
	case strings.Contains(line, "NVLS ") && nvls.MatchString(line):
		e.NVLS = true
	case slices.ContainsFunc(reasons, func(text string) bool { return strings.Contains(line, text) }) && info.MatchString(line):
		e.Reasons = keep(e.Reasons, info.FindStringSubmatch(line)[1])
	}
	return nil
}

// is records the library of the log. A second library is an error, because the log is
// then of two runs.
func (e *Evidence) is(library, version string) error {
	if e.Version != "" && (e.Library != library || e.Version != version) {
		return fmt.Errorf("it is the log of two libraries, %s %s and %s %s", e.Library, e.Version, library, shorten(version))
	}
	e.Library, e.Version = library, shorten(version)
	return nil
}

func (e *Evidence) connect(way string) error {
	if len(e.Connections) == maxPaths && e.Connections[way] == 0 {
		return fmt.Errorf("its connections use more than %d different paths", maxPaths)
	}
	e.Connections[way]++
	return nil
}

// keep appends a line unless it is a duplicate or the list is full.
func keep(lines []string, line string) []string {
	if line = shorten(line); len(lines) == maxLines || slices.Contains(lines, line) {
		return lines
	}
	return append(lines, line)
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}

// ornament matches details that differ between connections of one kind: a proxy's rank,
// the kind of copy, shared buffers.
var ornament = regexp.MustCompile(`\(\w+\)|/read|/CE|/Shared`)

// way returns the name of a connection without ornaments:
// NET/IB/0(3)/GDRDMA(PCI)/Shared becomes NET/IB/0/GDRDMA, and every name starting with
// SHM/ becomes SHM.
func way(text string) string {
	text, _, _ = strings.Cut(text, " comm ") // RCCL appends the communicator
	text = shorten(ornament.ReplaceAllString(strings.TrimSpace(text), ""))
	switch {
	case strings.HasPrefix(text, "SHM/"):
		return "SHM"
	case strings.HasPrefix(text, "P2P/indirect/"):
		return "P2P/indirect"
	}
	return text
}

// A Transport is a class of connections.
type Transport string

// The transports. The log does not show whether P2P uses NVLink or PCIe.
const (
	P2P     Transport = "p2p"     // GPU to GPU
	SHM     Transport = "shm"     // through host memory
	IB      Transport = "ib"      // InfiniBand or RoCE, through host memory
	GDRDMA  Transport = "gdrdma"  // InfiniBand or RoCE, from GPU memory
	Socket  Transport = "socket"  // TCP
	Other   Transport = "other"   // any other network plugin
	CollNet Transport = "collnet" // reductions in the network
)

// TransportOf returns the transport of a key of [Evidence.Connections].
func TransportOf(way string) Transport {
	kind, rest, _ := strings.Cut(way, "/")
	switch {
	case kind == "P2P":
		return P2P
	case kind == "SHM":
		return SHM
	case kind == "COLLNET":
		return CollNet
	case strings.HasPrefix(rest, "IB") && strings.HasSuffix(rest, "/GDRDMA"):
		return GDRDMA
	case strings.HasPrefix(rest, "IB"):
		return IB
	case strings.HasPrefix(rest, "Socket"):
		return Socket
	}
	return Other
}

// Transports returns the number of connections for each transport.
func (e Evidence) Transports() map[Transport]int {
	count := map[Transport]int{}
	for way, n := range e.Connections {
		count[TransportOf(way)] += n
	}
	return count
}

// Summary describes the connections in a few words, the most frequent
// first.
func (e Evidence) Summary() string {
	ways := slices.SortedFunc(maps.Keys(e.Connections), func(a, b string) int {
		if e.Connections[a] != e.Connections[b] {
			return e.Connections[b] - e.Connections[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, way := range ways[:min(len(ways), 8)] {
		parts = append(parts, fmt.Sprintf("%d via %s", e.Connections[way], way))
	}
	if len(ways) > 8 {
		parts = append(parts, fmt.Sprintf("%d more paths", len(ways)-8))
	}
	if e.NVLS {
		parts = append(parts, "NVLS")
	}
	if len(parts) == 0 {
		return "no channels"
	}
	return strings.Join(parts, ", ")
}

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
