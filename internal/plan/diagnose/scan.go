package diagnose

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// maxText bounds the printed part of a line, in bytes.
const maxText = 500

// A Finding is a failure found in a log. Line is the number of the first matching line,
// from 1, and Text is its content.
type Finding struct {
	Diagnosis
	Line  int    `json:"line"`
	Text  string `json:"text"`
	Count int    `json:"count"` // number of matching lines
}

// index holds the prepared search.
type index struct {
	known   []known
	signs   []sign
	finder  *finder
	watched int // number of counters in a scan
}

// known is a diagnosis and the indices of its counters, -1 for none.
type known struct {
	*Diagnosis
	signs int
	allOf []int
	not   int
}

// sign is one expression with its counter and the lines it ignores.
type sign struct {
	pattern
	counter int
	except  []pattern
}

func newIndex(all []Diagnosis) *index {
	ix := &index{}
	for i := range all {
		d := &all[i]
		k := known{Diagnosis: d, signs: ix.watch(d.signs, d.except), not: ix.watch(d.not, nil)}
		for _, p := range d.allOf {
			k.allOf = append(k.allOf, ix.watch([]pattern{p}, d.except))
		}
		ix.known = append(ix.known, k)
	}
	literals := map[int][]string{}
	for i, s := range ix.signs {
		literals[i] = s.literals
	}
	ix.finder = newFinder(literals)
	return ix
}

// watch adds a counter for lines that match any of the patterns.
func (ix *index) watch(patterns, except []pattern) int {
	if len(patterns) == 0 {
		return -1
	}
	for _, p := range patterns {
		ix.signs = append(ix.signs, sign{p, ix.watched, except})
	}
	ix.watched++
	return ix.watched - 1
}

// scan is the state of reading one log, line by line.
type scan struct {
	*index
	serial   int // number of the current line
	tried    []int
	counters []counter
}

// counter counts matching lines and keeps the first.
type counter struct {
	lines  int
	last   int // serial of the last counted line
	number int
	text   string
}

func (ix *index) scan() *scan {
	return &scan{index: ix, tried: make([]int, len(ix.signs)), counters: make([]counter, ix.watched)}
}

// line scans one line.
func (s *scan) line(number int, text []byte) {
	s.serial++
	s.finder.find(text, func(id int) {
		if s.tried[id] == s.serial {
			return
		}
		s.tried[id] = s.serial
		sign, c := &s.signs[id], &s.counters[s.signs[id].counter]
		matches := func(p pattern) bool { return p.Match(text) }
		if c.last == s.serial || !sign.Match(text) || slices.ContainsFunc(sign.except, matches) {
			return
		}
		c.last = s.serial
		if c.lines++; c.lines == 1 {
			c.number, c.text = number, strings.ToValidUTF8(string(text[:min(len(text), maxText)]), "")
		}
	})
}

// lines scans each line of a log and returns their number.
func (s *scan) lines(log io.Reader) (int, error) {
	return eachLine(log, func(l line) { s.line(l.number, l.text) })
}

// findings returns the failures found, ranked: errors before warnings before notes,
// then causes before symptoms, then by line.
func (s *scan) findings() []Finding {
	found := []Finding{}
	for _, k := range s.known {
		if c, ok := s.shown(k); ok {
			found = append(found, Finding{*k.Diagnosis, c.number, c.text, c.lines})
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Line, b.Line))
	})
	return found
}

// rank orders findings, the worst first: by severity, then causes before symptoms.
func (f Finding) rank() int {
	if f.Symptom {
		return 2*f.Severity.rank() + 1
	}
	return 2 * f.Severity.rank()
}

// shown reports whether all conditions of a diagnosis are met, and returns its most
// specific counter.
func (s *scan) shown(k known) (counter, bool) {
	if k.not >= 0 && s.counters[k.not].lines > 0 {
		return counter{}, false
	}
	wanted := k.allOf
	if k.signs >= 0 {
		wanted = append([]int{k.signs}, wanted...)
	}
	for _, i := range wanted {
		if s.counters[i].lines == 0 {
			return counter{}, false
		}
	}
	return s.counters[wanted[0]], true
}

// A finder finds which of many texts occur in a line. It makes one pass over the line,
// whatever the number of texts: it looks at every four bytes whether a text begins with
// them.
type finder struct {
	maybe [1 << 16]bool     // by hash: some text may begin with these bytes
	texts map[uint32][]text // by their first four bytes
}

// text is a text to find. It has at least [minLiteral] bytes.
type text struct {
	id   int
	rest string // after the first four bytes
}

// newFinder returns a finder of texts by id.
func newFinder(texts map[int][]string) *finder {
	f := &finder{texts: map[uint32][]text{}}
	for id, list := range texts {
		for _, t := range list {
			first := binary.LittleEndian.Uint32([]byte(t))
			f.maybe[hash(first)] = true
			f.texts[first] = append(f.texts[first], text{id, t[minLiteral:]})
		}
	}
	return f
}

func hash(first uint32) uint16 { return uint16(first * 0x9e3779b1 >> 16) }

// find visits the id of each occurrence of a text in the line.
func (f *finder) find(line []byte, visit func(id int)) {
	for i := 0; i+minLiteral <= len(line); i++ {
		first := binary.LittleEndian.Uint32(line[i:])
		if !f.maybe[hash(first)] {
			continue
		}
		for _, t := range f.texts[first] {
			if rest := line[i+minLiteral:]; len(rest) >= len(t.rest) && string(rest[:len(t.rest)]) == t.rest {
				visit(t.id)
			}
		}
	}
}
