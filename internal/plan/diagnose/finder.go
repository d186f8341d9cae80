package diagnose

import "encoding/binary"

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
