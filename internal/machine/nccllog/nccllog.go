// Package nccllog reads what NCCL and RCCL say of themselves with
// NCCL_DEBUG=INFO: which library it is, over what its channels run, and why not
// over something better.
//
// A collective that falls back to sockets or to host memory is right and slow,
// and says nothing. The log is the only witness. Its lines are those of NCCL 2.18
// to 2.30 and of RCCL (src/init.cc, src/transport, src/graph/paths.cc); lines that
// are not known are left alone, and what is kept is bounded. [Parse] is for one run
// that has to be whole; [ParseRun] for the log of a job, of any size, and says what
// it left out. What the programs of nccl-tests print reads package nccltests.
package nccllog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is read and kept.
const (
	maxLog   = 16 << 20 // bytes
	maxPaths = 4096     // different ways of a channel
	maxLines = 64       // reasons, and warnings
	maxText  = 400      // characters of each
)

// Evidence is what a log shows.
type Evidence struct {
	Library  string         `json:"library"`  // NCCL or RCCL, empty where no line says it
	Version  string         `json:"version"`  // as it stands in the log: 2.29.7+cuda13.0
	Networks []string       `json:"networks"` // IB, Socket or the name of a plugin
	Channels map[string]int `json:"channels"` // way to the number of connections that take it: P2P/CUMEM, SHM, NET/IB/0/GDRDMA
	NVLS     bool           `json:"nvls"`     // multicast in the NVLink switch was set up
	Reasons  []string       `json:"reasons"`  // what it says about devices found, not found or refused, and settings
	Warnings []string       `json:"warnings"` // NCCL WARN
}

// Parse reads a log; several processes may have written to it.
func Parse(r io.Reader) (Evidence, error) {
	limited := &io.LimitedReader{R: r, N: maxLog + 1}
	in := bufio.NewReaderSize(limited, 4<<10) // a line of NCCL has at most 1 KiB
	e := Evidence{Channels: map[string]int{}}
	for {
		line, err := in.ReadSlice('\n')
		if limited.N <= 0 {
			return Evidence{}, fmt.Errorf("reading the log of NCCL: it is longer than %d bytes", maxLog)
		}
		if fault := e.line(strings.TrimSpace(string(line))); fault != nil {
			return Evidence{}, fmt.Errorf("reading the log of NCCL: %w", fault)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return e, nil
			}
			return Evidence{}, fmt.Errorf("reading the log of NCCL: %w", err)
		}
	}
}

var (
	// The suffix of a release candidate belongs to the version; RCCL adds the
	// commit after a blank, and since 6.3 writes a colon.
	version = regexp.MustCompile(`(?:^|NCCL INFO )([NR]CCL) version (?:: )?(\S+)`)
	channel = regexp.MustCompile(`NCCL INFO (?:Channel|CollNet) \d+.* via ((?:P2P|SHM|NET|COLLNET)/.+)`)
	network = regexp.MustCompile(`NCCL INFO Using network (.+)`)
	warning = regexp.MustCompile(`NCCL WARN (.+)`)
	info    = regexp.MustCompile(`NCCL INFO (.+)`)
	nvls    = regexp.MustCompile(`NCCL INFO (?:NVLS comm 0x|Connected NVLS tree)`)
	reason  = regexp.MustCompile(`NET/IB : (?:No device|Using|GPU Direct)|NET/Socket : Using|Failed to open lib|GPU Direct RDMA|GDRDMA not enabled|P2P is disabled|Could not enable P2P|peer query failed|IPC not supported|NVLS multicast support is not|set by environment to|Failed to initialize (?:any )?NET|disabling|iommu`)
)

func (e *Evidence) line(line string) error {
	if !strings.Contains(line, "CCL ") {
		return nil
	}
	switch {
	case version.MatchString(line):
		m := version.FindStringSubmatch(line)
		return e.is(m[1], m[2])
	case channel.MatchString(line):
		return e.connect(way(channel.FindStringSubmatch(line)[1]))
	case network.MatchString(line):
		e.Networks = keep(e.Networks, network.FindStringSubmatch(line)[1])
	case warning.MatchString(line):
		e.Warnings = keep(e.Warnings, warning.FindStringSubmatch(line)[1])
	case nvls.MatchString(line):
		e.NVLS = true
	case reason.MatchString(line) && info.MatchString(line):
		e.Reasons = keep(e.Reasons, info.FindStringSubmatch(line)[1])
	}
	return nil
}

// Speaker is the library that a log names first, NCCL or RCCL, and its version; both
// are empty where no line says it.
func Speaker(log string) (library, said string) {
	for line := range strings.Lines(log) {
		if m := version.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			return m[1], shorten(m[2])
		}
	}
	return "", ""
}

// is notes which library speaks. Two in one log belong to two runs.
func (e *Evidence) is(library, version string) error {
	if e.Version != "" && (e.Library != library || e.Version != version) {
		return fmt.Errorf("two libraries speak in it, %s %s and %s %s", e.Library, e.Version, library, shorten(version))
	}
	e.Library, e.Version = library, shorten(version)
	return nil
}

func (e *Evidence) connect(way string) error {
	if len(e.Channels) == maxPaths && e.Channels[way] == 0 {
		return fmt.Errorf("its channels take more than %d different ways", maxPaths)
	}
	e.Channels[way]++
	return nil
}

// keep adds a line that is not there yet.
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

// ornament is what differs between connections of one kind: a proxy's rank, the
// way of a copy, whether buffers are shared.
var ornament = regexp.MustCompile(`\(\w+\)|/read|/CE|/Shared`)

// way names a connection without its ornaments: NET/IB/0(3)/GDRDMA(PCI)/Shared
// is NET/IB/0/GDRDMA, and all of SHM/ is SHM.
func way(text string) string {
	text, _, _ = strings.Cut(text, " comm ") // RCCL says more
	text = shorten(ornament.ReplaceAllString(strings.TrimSpace(text), ""))
	switch {
	case strings.HasPrefix(text, "SHM/"):
		return "SHM"
	case strings.HasPrefix(text, "P2P/indirect/"):
		return "P2P/indirect"
	}
	return text
}

// A Transport is a kind of way.
type Transport string

// The kinds of ways. Whether P2P runs over NVLink or PCIe the log does not say.
const (
	P2P     Transport = "p2p"     // from GPU to GPU
	SHM     Transport = "shm"     // through the memory of the host
	IB      Transport = "ib"      // InfiniBand or RoCE, through the memory of the host
	GDRDMA  Transport = "gdrdma"  // the same, from GPU memory
	Socket  Transport = "socket"  // TCP
	Other   Transport = "other"   // a network plugin that is none of these
	CollNet Transport = "collnet" // reductions in the network
)

// TransportOf returns the kind of a way, a key of [Evidence.Channels].
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

// Transports returns the number of connections of each kind.
func (e Evidence) Transports() map[Transport]int {
	count := map[Transport]int{}
	for way, n := range e.Channels {
		count[TransportOf(way)] += n
	}
	return count
}

// Summary says in a few words over what the channels run, the most used way first.
func (e Evidence) Summary() string {
	ways := slices.SortedFunc(maps.Keys(e.Channels), func(a, b string) int {
		if e.Channels[a] != e.Channels[b] {
			return e.Channels[b] - e.Channels[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, way := range ways[:min(len(ways), 8)] {
		parts = append(parts, fmt.Sprintf("%d via %s", e.Channels[way], way))
	}
	if len(ways) > 8 {
		parts = append(parts, fmt.Sprintf("%d more ways", len(ways)-8))
	}
	if e.NVLS {
		parts = append(parts, "NVLS")
	}
	if len(parts) == 0 {
		return "no channels"
	}
	return strings.Join(parts, ", ")
}
