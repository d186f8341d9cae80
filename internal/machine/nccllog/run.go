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

// Bounds of what is kept of a run; a log may be of any size.
const (
	maxCommunicators = 64
	maxNumbers       = 1 << 20 // ranks in rings and trees, all together
	maxSettings      = 256
)

// A Run is what the log of a job shows of how its ranks are joined. Several
// processes may have written to one log; that of one rank shows less.
type Run struct {
	Library       string         `json:"library"` // NCCL or RCCL, empty where no line says it
	Version       string         `json:"version"`
	Networks      []string       `json:"networks"`
	Communicators []Communicator `json:"communicators"` // in the order in which they began
	Settings      []Setting      `json:"settings"`      // of the environment, by name
	Reasons       []string       `json:"reasons"`       // what it says about devices found, not found or refused
	Warnings      []string       `json:"warnings"`
	Cut           bool           `json:"cut,omitempty"` // there was more than can be kept
}

// A Communicator is a group of ranks.
type Communicator struct {
	ID       string `json:"id"`       // commId; empty for releases that do not say it
	Ranks    int    `json:"ranks"`    // 0 where no line says it
	Nodes    int    `json:"nodes"`    // the same
	Channels int    `json:"channels"` // of collectives; the same
	Rings    []Ring `json:"rings"`    // by channel
	Trees    []Tree `json:"trees"`    // by channel
	// Connections is the number of connections by way, as in [Evidence.Channels].
	Connections map[string]int `json:"connections"`

	next map[int]map[int]int // of rings: channel to rank to the rank after it
}

// A Ring is the order of the ranks in a channel. The library prints the first
// twenty alone, unless it is asked for NCCL_DEBUG_SUBSYS=GRAPH.
type Ring struct {
	Channel int   `json:"channel"`
	Ranks   []int `json:"ranks"`
	Whole   bool  `json:"whole"` // it holds all ranks
}

// A Tree is who hands to whom in a channel: the rank above each rank, -1 for the
// root. A rank is missing where neither its own log nor that of the rank above it is
// there.
type Tree struct {
	Channel int         `json:"channel"`
	Up      map[int]int `json:"up"`
}

// Shown reports whether the log told of a run at all.
func (r Run) Shown() bool { return r.Library != "" || len(r.Communicators) > 0 }

// ParseRun reads the log of a job. What it keeps is bounded, and lines that are not
// known are left alone.
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

// runParser is what has been read of a log.
type runParser struct {
	run      Run
	evidence Evidence
	current  map[string]int // index of the communicator that a GPU of a process is in
	settings map[string]string
	numbers  int
}

var (
	// A line begins with host:process:thread [GPU]; threads come and go within a
	// communicator.
	speaker = regexp.MustCompile(`(\S+:\d+):\d+ (\[-?\d+\]) NCCL INFO (.+)`)
	spoken  = regexp.MustCompile(`NCCL INFO (.+)`)

	begins   = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nranks (\d+) .*commId (0x[0-9a-f]+) - Init START`)
	finished = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nranks (\d+) .*- Init COMPLETE`)
	shape    = regexp.MustCompile(`comm 0x[0-9a-f]+ rank \d+ nRanks (\d+) nNodes (\d+) `)
	ordered  = regexp.MustCompile(`^Channel (\d+)/\d+ :((?: +\d+)+)$`)
	linked   = regexp.MustCompile(`^Ring (\d+) : (\d+) -> (\d+) -> (\d+)`)
	treeLine = regexp.MustCompile(`^Trees \[`)
	tree     = regexp.MustCompile(`\[(\d+)\] ((?:-?\d+/){2}-?\d+)->(\d+)->(-?\d+)`)
	members  = regexp.MustCompile(` comm 0x[0-9a-f]+ nRanks (\d+)`) // RCCL alone
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
		p.run.Cut = true // of another library, or more ways than are kept
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
	case ordered.MatchString(text):
		p.ring(p.of(who), ordered.FindStringSubmatch(text))
	case linked.MatchString(text):
		p.link(p.of(who), linked.FindStringSubmatch(text))
	case treeLine.MatchString(text):
		c := p.of(who)
		if m := members.FindStringSubmatch(text); m != nil {
			c.Ranks = cmp.Or(c.Ranks, number(m[1]))
		}
		p.trees(c, tree.FindAllStringSubmatch(text, -1))
	case counts.MatchString(text):
		p.of(who).Channels = number(counts.FindStringSubmatch(text)[1])
	case channel.MatchString(line):
		p.connect(p.of(who), way(channel.FindStringSubmatch(line)[1]))
	}
}

// set notes a variable of the environment, the last value of each.
func (p *runParser) set(name, value string) {
	if _, known := p.settings[name]; known || len(p.settings) < maxSettings {
		p.settings[name] = shorten(value)
	}
}

// enter notes that a GPU begins in a communicator.
func (p *runParser) enter(who, id string) *Communicator {
	i := slices.IndexFunc(p.run.Communicators, func(c Communicator) bool { return c.ID == id })
	if i < 0 {
		i = p.add(id)
	}
	p.current[who] = i
	return &p.run.Communicators[i]
}

// of is the communicator that a GPU is in; one without a name where no line said
// that it began.
func (p *runParser) of(who string) *Communicator {
	i, known := p.current[who]
	if !known {
		if i = slices.IndexFunc(p.run.Communicators, func(c Communicator) bool { return c.ID == "" }); i < 0 {
			i = p.add("")
		}
	}
	return &p.run.Communicators[i]
}

// add makes a communicator; when there are too many the last one stands for the
// rest.
func (p *runParser) add(id string) int {
	if len(p.run.Communicators) == maxCommunicators {
		p.run.Cut = true
		return maxCommunicators - 1
	}
	p.run.Communicators = append(p.run.Communicators, Communicator{ID: id, Connections: map[string]int{}, next: map[int]map[int]int{}})
	return len(p.run.Communicators) - 1
}

// keep reports whether so many more ranks can be kept.
func (p *runParser) keep(n int) bool {
	if p.numbers += n; p.numbers > maxNumbers {
		p.run.Cut = true
		return false
	}
	return true
}

func (p *runParser) ring(c *Communicator, m []string) {
	var ranks []int
	for text := range strings.FieldsSeq(m[2]) {
		ranks = append(ranks, number(text))
	}
	i := number(m[1])
	if p.keep(len(ranks)) && !slices.ContainsFunc(c.Rings, func(r Ring) bool { return r.Channel == i }) {
		c.Rings = append(c.Rings, Ring{Channel: i, Ranks: ranks})
	}
}

func (p *runParser) link(c *Communicator, m []string) {
	if !p.keep(1) {
		return
	}
	i := number(m[1])
	if c.next[i] == nil {
		c.next[i] = map[int]int{}
	}
	c.next[i][number(m[2])], c.next[i][number(m[3])] = number(m[3]), number(m[4])
}

func (p *runParser) trees(c *Communicator, lines [][]string) {
	for _, m := range lines {
		i := slices.IndexFunc(c.Trees, func(t Tree) bool { return t.Channel == number(m[1]) })
		if !p.keep(4) {
			return
		}
		if i < 0 {
			c.Trees, i = append(c.Trees, Tree{number(m[1]), map[int]int{}}), len(c.Trees)
		}
		rank := number(m[3])
		c.Trees[i].Up[rank] = number(m[4])
		for text := range strings.SplitSeq(m[2], "/") {
			if below := number(text); below >= 0 {
				c.Trees[i].Up[below] = rank
			}
		}
	}
}

func (p *runParser) connect(c *Communicator, way string) {
	if len(c.Connections) == maxPaths && c.Connections[way] == 0 {
		p.run.Cut = true
		return
	}
	c.Connections[way]++
}

// number reads digits that a pattern found; what is too long is no rank.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// end completes the rings and sorts what was found.
func (p *runParser) end() Run {
	r := p.run
	r.Library, r.Version = p.evidence.Library, p.evidence.Version
	r.Networks, r.Reasons, r.Warnings = p.evidence.Networks, p.evidence.Reasons, p.evidence.Warnings
	for i := range r.Communicators {
		r.Communicators[i].complete()
	}
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		r.Settings = append(r.Settings, Setting{name, p.settings[name], costOf(name, p.settings[name])})
	}
	return r
}

// complete takes the rings that are told link by link where those go further, and
// sorts by channel.
func (c *Communicator) complete() {
	for i, next := range c.next {
		ring := Ring{Channel: i, Ranks: follow(next)}
		at := slices.IndexFunc(c.Rings, func(r Ring) bool { return r.Channel == i })
		switch {
		case at < 0:
			c.Rings = append(c.Rings, ring)
		case len(ring.Ranks) > len(c.Rings[at].Ranks):
			c.Rings[at] = ring
		}
	}
	for i := range c.Rings {
		c.Rings[i].Whole = c.Ranks > 0 && len(c.Rings[i].Ranks) == c.Ranks
	}
	slices.SortFunc(c.Rings, func(a, b Ring) int { return cmp.Compare(a.Channel, b.Channel) })
	slices.SortFunc(c.Trees, func(a, b Tree) int { return cmp.Compare(a.Channel, b.Channel) })
}

// follow goes from the lowest rank on as far as the links are known.
func follow(next map[int]int) []int {
	first := slices.Min(slices.Collect(maps.Keys(next)))
	ranks := []int{first}
	for at, known := next[first]; known && at != first && len(ranks) <= len(next); at, known = next[at] {
		ranks = append(ranks, at)
	}
	return ranks
}
