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
	"strconv"
	"strings"
)

// Limits for the data kept of a run. A log may have any size.
const (
	maxCommunicators = 64
	maxSettings      = 256
)

// A Run tells how the ranks of a job connected, read from its log. One log may come
// from several processes. The log of a single rank is less complete.
type Run struct {
	Library       string         `json:"library"` // NCCL or RCCL, empty if the log does not name it
	Version       string         `json:"version"`
	Networks      []string       `json:"networks"`
	Communicators []Communicator `json:"communicators"` // in order of their start
	Settings      []Setting      `json:"settings"`      // from the environment, sorted by name
	Reasons       []string       `json:"reasons"`       // lines on devices found, not found or refused
	Warnings      []string       `json:"warnings"`
	Cut           bool           `json:"cut,omitempty"` // data over the limits, or of a second library, was dropped
}

// A Communicator is a group of ranks.
type Communicator struct {
	ID       string `json:"id"`       // commId; empty for releases that do not print it
	Ranks    int    `json:"ranks"`    // 0 if unknown
	Nodes    int    `json:"nodes"`    // 0 if unknown
	Channels int    `json:"channels"` // channels of collectives, 0 if unknown
	// Connections counts the connections by transport, as in [Evidence.Channels].
	Connections map[string]int `json:"connections"`
}

// Shown reports whether the log contains a run at all.
func (r Run) Shown() bool { return r.Library != "" || len(r.Communicators) > 0 }

// ParseRun reads the log of a job. It ignores unknown lines and limits the data it
// keeps.
func ParseRun(in io.Reader) (Run, error) {
	p := runParser{evidence: Evidence{Channels: map[string]int{}, Reasons: []string{}}, current: map[string]int{}, settings: map[string]string{}}
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		p.line(strings.TrimSpace(string(line)))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) {
				return p.end(), nil
			}
			return Run{}, fmt.Errorf("reading the log of a run: %w", err)
		}
	}
}

// runParser is the state of parsing a log.
type runParser struct {
	run      Run
	evidence Evidence
	current  map[string]int // current communicator of a process and GPU, by index
	settings map[string]string
}

var (
	// A line starts with host:process:thread [GPU]. The thread is ignored, because a
	// communicator may use several.
	speaker = regexp.MustCompile(`(\S+:\d+):\d+ (\[-?\d+\]) NCCL INFO (.+)`)
	spoken  = regexp.MustCompile(`NCCL INFO (.+)`)

	begins   = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nranks (\d+) .*commId (0x[0-9a-f]+) - Init START`)
	finished = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nranks (\d+) .*- Init COMPLETE`)
	shape    = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nRanks (\d+) nNodes (\d+) `)
	members  = regexp.MustCompile(`^Trees \[.* comm 0x[0-9a-f]+ nRanks (\d+)`) // only RCCL
	counts   = regexp.MustCompile(`^(\d+) coll channels,`)
	setting  = regexp.MustCompile(`^((?:NCCL|RCCL|HSA)_[A-Z0-9_]+) set by environment to (.*?)\.?$`)
)

func (p *runParser) line(line string) {
	if !strings.Contains(line, "CCL ") {
		return
	}
	who, text := "", ""
	if m := speaker.FindStringSubmatch(line); m != nil {
		who, text = m[1]+m[2], m[3]
	} else if m := spoken.FindStringSubmatch(line); m != nil {
		text = m[1]
	}
	if m := setting.FindStringSubmatch(text); m != nil {
		p.set(m[1], m[2])
		return
	}
	if err := p.evidence.line(line); err != nil {
		p.run.Cut = true // a second library, or too many transports
	}
	switch {
	case text == "":
	case begins.MatchString(text):
		m := begins.FindStringSubmatch(text)
		p.enter(who, m[2]).Ranks = number(m[1])
	case finished.MatchString(text):
		c := p.of(who)
		c.Ranks = cmp.Or(c.Ranks, number(finished.FindStringSubmatch(text)[1]))
	case shape.MatchString(text):
		m, c := shape.FindStringSubmatch(text), p.of(who)
		c.Ranks, c.Nodes = cmp.Or(c.Ranks, number(m[1])), number(m[2])
	case members.MatchString(text):
		c := p.of(who)
		c.Ranks = cmp.Or(c.Ranks, number(members.FindStringSubmatch(text)[1]))
	case counts.MatchString(text):
		p.of(who).Channels = number(counts.FindStringSubmatch(text)[1])
	case channel.MatchString(line):
		p.connect(p.of(who), way(channel.FindStringSubmatch(line)[1]))
	}
}

// set records an environment variable. The last value counts.
func (p *runParser) set(name, value string) {
	if _, known := p.settings[name]; known || len(p.settings) < maxSettings {
		p.settings[name] = shorten(value)
	}
}

// enter records that a GPU joins a communicator.
func (p *runParser) enter(who, id string) *Communicator {
	i := slices.IndexFunc(p.run.Communicators, func(c Communicator) bool { return c.ID == id })
	if i < 0 {
		i = p.add(id)
	}
	p.current[who] = i
	return &p.run.Communicators[i]
}

// of returns the communicator of a GPU, or an unnamed one if the log does not show its
// start.
func (p *runParser) of(who string) *Communicator {
	i, known := p.current[who]
	if !known {
		if i = slices.IndexFunc(p.run.Communicators, func(c Communicator) bool { return c.ID == "" }); i < 0 {
			i = p.add("")
		}
	}
	return &p.run.Communicators[i]
}

// add adds a communicator. At the limit, the last one stands for all others.
func (p *runParser) add(id string) int {
	if len(p.run.Communicators) == maxCommunicators {
		p.run.Cut = true
		return maxCommunicators - 1
	}
	p.run.Communicators = append(p.run.Communicators, Communicator{ID: id, Connections: map[string]int{}})
	return len(p.run.Communicators) - 1
}

func (p *runParser) connect(c *Communicator, way string) {
	if len(c.Connections) == maxPaths && c.Connections[way] == 0 {
		p.run.Cut = true
		return
	}
	c.Connections[way]++
}

// number converts matched digits. It returns -1 for a number too large for a rank.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// end returns the run.
func (p *runParser) end() Run {
	r := p.run
	r.Library, r.Version = p.evidence.Library, p.evidence.Version
	r.Networks, r.Reasons, r.Warnings = p.evidence.Networks, p.evidence.Reasons, p.evidence.Warnings
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		r.Settings = append(r.Settings, Setting{name, p.settings[name], costOf(name, p.settings[name])})
	}
	return r
}
