package elf

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// findable returns a function that reports whether the loader finds a symbol by its name.
// A symbol in the symbol table without an entry in each hash table is not exported.
func (d *dynamic) findable() (func(symbol int) bool, error) {
	var tables [][]bool
	for kind, mark := range map[elf.SectionType]func(table []uint32, found []bool) bool{elf.SHT_HASH: d.markSystem, elf.SHT_GNU_HASH: d.markGNU} {
		s := d.sections[kind]
		if s == nil {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		table := make([]uint32, len(data)/4)
		for i := range table {
			table[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		found := make([]bool, len(d.symbols)+1)
		if !mark(table, found) {
			return nil, fmt.Errorf("hash table %q contradicts itself, or leads beyond the %d symbols of the section table", s.Name, len(found))
		}
		tables = append(tables, found)
	}
	return func(symbol int) bool {
		for _, found := range tables {
			if !found[symbol] {
				return false
			}
		}
		return len(tables) > 0
	}, nil
}

// markSystem marks the symbols that a loader finds by DT_HASH, the table of the System V
// ABI: the first symbol of each bucket, and for each symbol the next one. It returns false
// for a table that leads out of itself.
func (d *dynamic) markSystem(table []uint32, found []bool) bool {
	if len(table) < 2 || table[0] == 0 || int(table[1]) > len(found) || int(table[0])+int(table[1]) > len(table)-2 {
		return false
	}
	buckets, next := table[2:][:table[0]], table[2+table[0]:][:table[1]]
	seen := make([]bool, len(next))
	for bucket, at := range buckets {
		for ; at != 0; at = next[at] {
			if int(at) >= len(next) {
				return false
			}
			if seen[at] {
				break
			}
			seen[at] = true
			found[at] = hashSystem(d.symbols[at-1].Name)%table[0] == uint32(bucket)
		}
	}
	return true
}

// markGNU marks the symbols that a loader finds by DT_GNU_HASH, which the GNU loader
// prefers: a Bloom filter, the first symbol of each bucket, and the hashes of all symbols
// from first on. The lowest bit marks the last hash of a bucket. It returns false for a
// table that leads out of itself.
func (d *dynamic) markGNU(table []uint32, found []bool) bool {
	if len(table) < 4 {
		return false
	}
	buckets, first, words, shift := int(table[0]), int(table[1]), int(table[2]), table[3]
	if buckets == 0 || words == 0 || words&(words-1) != 0 || shift > 31 || 2*words+buckets > len(table)-4 {
		return false
	}
	filter, starts, hashes := table[4:][:2*words], table[4+2*words:][:buckets], table[4+2*words+buckets:]
	seen := make([]bool, len(found))
	for bucket, start := range starts {
		for at, last := int(start), start == 0; !last; at++ {
			if at < first || at >= len(found) || at-first >= len(hashes) {
				return false
			}
			if seen[at] {
				break
			}
			h := hashGNU(d.symbols[at-1].Name)
			low := 2 * (int(h/64) % words)
			word := uint64(filter[low]) | uint64(filter[low+1])<<32
			found[at] = hashes[at-first]|1 == h|1 && h%table[0] == uint32(bucket) && word>>(h%64)&1 == 1 && word>>(h>>shift%64)&1 == 1
			last, seen[at] = hashes[at-first]&1 == 1, true
		}
	}
	return true
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
