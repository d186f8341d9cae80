package elf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// lookup finds symbols by their name as the loader does. A symbol in the symbol table
// without an entry in the hash table is not exported.
type lookup struct {
	system *systemTable
	gnu    *gnuTable
}

// systemTable is DT_HASH, the table of the System V ABI: the first symbol of each bucket,
// and for each symbol the next one.
type systemTable struct{ buckets, next []uint32 }

// gnuTable is DT_GNU_HASH, which the GNU loader prefers: a Bloom filter, the first symbol
// of each bucket, and the hashes of all symbols from first on. The lowest bit marks the
// last hash of a bucket.
type gnuTable struct {
	first, shift    uint32
	filter          []uint32 // the low and the high half of each word
	buckets, hashes []uint32
}

func (d *dynamic) readLookup() (l lookup, err error) {
	for kind, read := range map[elf.SectionType]func(table []uint32, symbols int) bool{elf.SHT_HASH: l.readSystem, elf.SHT_GNU_HASH: l.readGNU} {
		s := d.sections[kind]
		if s == nil {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return l, err
		}
		table := make([]uint32, len(data)/4)
		for i := range table {
			table[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		if !read(table, len(d.symbols)+1) {
			return l, fmt.Errorf("hash table %q contradicts itself, or leads beyond the %d symbols of the section table", s.Name, len(d.symbols)+1)
		}
	}
	return l, nil
}

// readSystem returns false for a table that leads out of itself.
func (l *lookup) readSystem(table []uint32, symbols int) bool {
	if len(table) < 2 || table[0] == 0 || int(table[1]) > symbols || int(table[0])+int(table[1]) > len(table)-2 {
		return false
	}
	entries := table[2:][:table[0]+table[1]]
	l.system = &systemTable{entries[:table[0]], entries[table[0]:]}
	return slices.Max(entries) < max(table[1], 1)
}

// readGNU returns false for a table that leads out of itself.
func (l *lookup) readGNU(table []uint32, symbols int) bool {
	if len(table) < 4 {
		return false
	}
	buckets, first, words, shift := int(table[0]), table[1], int(table[2]), table[3]
	if buckets == 0 || words == 0 || words&(words-1) != 0 || shift > 31 || 2*words+buckets > len(table)-4 {
		return false
	}
	starts := table[4+2*words:]
	g := &gnuTable{first, shift, table[4:][:2*words], starts[:buckets], starts[buckets:]}
	l.gnu = g
	if last := slices.Max(g.buckets); last > 0 {
		end := slices.IndexFunc(g.hashes[min(uint32(len(g.hashes)), last-min(first, last)):], func(h uint32) bool { return h&1 == 1 })
		return last >= first && end >= 0 && int(last)+end < symbols
	}
	return true
}

// finds reports whether the loader finds a symbol by its name.
func (l lookup) finds(name string, symbol uint32) bool {
	return (l.gnu != nil || l.system != nil) && (l.gnu == nil || l.gnu.finds(name, symbol)) && (l.system == nil || l.system.finds(name, symbol))
}

func (t *systemTable) finds(name string, symbol uint32) bool {
	at := t.buckets[hashSystem(name)%uint32(len(t.buckets))]
	for range t.next {
		if at == symbol || at == 0 {
			return at != 0
		}
		at = t.next[at]
	}
	return false
}

func (t *gnuTable) finds(name string, symbol uint32) bool {
	h := hashGNU(name)
	low := 2 * (int(h/64) % (len(t.filter) / 2))
	filter := uint64(t.filter[low]) | uint64(t.filter[low+1])<<32
	at := t.buckets[h%uint32(len(t.buckets))]
	if filter>>(h%64)&1 == 0 || filter>>(h>>t.shift%64)&1 == 0 || at < t.first || symbol < at || int(symbol-t.first) >= len(t.hashes) {
		return false
	}
	chain := t.hashes[at-t.first : symbol-t.first+1]
	isLast := func(h uint32) bool { return h&1 == 1 }
	return chain[len(chain)-1]|1 == h|1 && !slices.ContainsFunc(chain[:len(chain)-1], isLast)
}

func hashGNU(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}

// hashSystem is the hash function of the System V ABI.
func hashSystem(name string) uint32 {
	var h uint32
	for i := range len(name) {
		h = h<<4 + uint32(name[i])
		h ^= h & 0xf0000000 >> 24
	}
	return h & 0x0fffffff
}
