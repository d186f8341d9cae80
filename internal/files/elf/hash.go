package elf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
)

// lookup finds symbols by their name as the loader does. A symbol in the symbol table
// without an entry in the hash table is not exported.
type lookup struct {
	system hashTable // DT_HASH, the table of the System V ABI
	gnu    hashTable // DT_GNU_HASH, which the GNU loader prefers
}

// hashTable is the bytes of a section. It is nil if there is none.
type hashTable []byte

func (d *dynamic) readLookup() (l lookup, err error) {
	for kind, table := range map[elf.SectionType]*hashTable{elf.SHT_HASH: &l.system, elf.SHT_GNU_HASH: &l.gnu} {
		s := d.sections[kind]
		if s == nil {
			continue
		}
		if *table, err = s.Data(); err != nil {
			return l, err
		}
		if len(*table) < 16 {
			return l, fmt.Errorf("section %q is too short for a hash table", s.Name)
		}
	}
	for name, last := range map[string]uint64{"DT_HASH": l.system.last(), "DT_GNU_HASH": l.gnu.lastGNU()} {
		if last > uint64(len(d.symbols)) {
			return l, fmt.Errorf("%s leads to symbol %d, and the section table shows %d", name, last, len(d.symbols)+1)
		}
	}
	return l, nil
}

// at returns a word at an offset, 0 outside the table.
func (t hashTable) at(off uint64) uint64 {
	if off+4 > uint64(len(t)) {
		return 0
	}
	return word(t, off)
}

// finds reports whether the loader finds a symbol by its name.
func (l lookup) finds(name string, symbol uint64) bool {
	return (l.gnu != nil || l.system != nil) && (l.gnu == nil || l.gnu.findsGNU(name, symbol)) && (l.system == nil || l.system.finds(name, symbol))
}

// finds follows the chain of a name's bucket: each symbol leads to the next.
func (t hashTable) finds(name string, symbol uint64) bool {
	buckets, symbols := t.at(0), t.at(4)
	if buckets == 0 {
		return false
	}
	at := t.at(8 + 4*(uint64(hashSystem(name))%buckets))
	for range symbols {
		if at == symbol || at == 0 {
			return at != 0
		}
		at = t.at(8 + 4*(buckets+at))
	}
	return false
}

// findsGNU asks the Bloom filter, and then follows the hashes of the bucket's symbols. The
// lowest bit marks the last of them.
func (t hashTable) findsGNU(name string, symbol uint64) bool {
	h := hashGNU(name)
	buckets, first, words, shift := t.at(0), t.at(4), t.at(8), t.at(12)
	if buckets == 0 || words == 0 || words&(words-1) != 0 || shift > 31 || 16+8*words > uint64(len(t)) {
		return false
	}
	filter := binary.LittleEndian.Uint64(t[16+8*(uint64(h/64)%words):])
	if filter>>(h%64)&1 == 0 || filter>>(h>>shift%64)&1 == 0 {
		return false
	}
	starts := 16 + 8*words
	at := t.at(starts + 4*(uint64(h)%buckets))
	for ; at >= first && at < symbol; at++ {
		if t.hashOf(at)&1 == 1 {
			return false
		}
	}
	return at == symbol && at >= first && t.hashOf(at)|1 == uint64(h)|1
}

// hashOf returns the hash of a symbol. One outside the table ends its bucket.
func (t hashTable) hashOf(symbol uint64) uint64 {
	if !t.has(symbol) {
		return 1
	}
	return t.at(t.place(symbol))
}

func (t hashTable) place(symbol uint64) uint64 { return 16 + 8*t.at(8) + 4*(t.at(0)+symbol-t.at(4)) }

func (t hashTable) has(symbol uint64) bool {
	return symbol >= t.at(4) && t.place(symbol)+4 <= uint64(len(t))
}

// last returns the last symbol to which the table leads.
func (t hashTable) last() (last uint64) {
	if t == nil {
		return 0
	}
	entries := t.at(0) + t.at(4)
	if 8+4*entries > uint64(len(t)) {
		return math.MaxUint32
	}
	last = max(t.at(4), 1) - 1
	for i := range entries {
		last = max(last, t.at(8+4*i))
	}
	return last
}

// lastGNU is last for DT_GNU_HASH, where the last bucket has no end of its own.
func (t hashTable) lastGNU() (last uint64) {
	for i := range min(t.at(0), uint64(len(t))/4) {
		last = max(last, t.at(16+8*t.at(8)+4*i))
	}
	if last == 0 {
		return 0
	}
	for t.hashOf(last)&1 == 0 {
		last++
	}
	if !t.has(last) {
		return math.MaxUint32 // the loader reads on after the table
	}
	return last
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
