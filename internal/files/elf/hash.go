package elf

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// exports are the symbols the loader finds by name. A symbol in the symbol table
// without an entry in the hash table is not exported.
type exports struct {
	count  int // symbols covered by the tables
	system *hashTable
	gnu    *gnuTable
}

// hashTable maps each symbol to its bucket.
type hashTable struct {
	buckets uint32
	of      []uint32 // by symbol: the number of its bucket, starting at 1; 0 for none
}

// gnuTable is the table preferred by the GNU loader: a Bloom filter, buckets, and the
// hashes of all symbols from first on. The lowest bit marks the last hash of a bucket.
type gnuTable struct {
	hashTable
	first, shift uint64
	filter       []byte
	hashes       []byte
}

func (d *dynamic) exports() (x exports, err error) {
	if addr := d.values[elf.DT_HASH]; addr != 0 {
		if err := x.readSystem(d, addr); err != nil {
			return x, fmt.Errorf("reading the hash table (DT_HASH): %w", err)
		}
	}
	if addr := d.values[elf.DT_GNU_HASH]; addr != 0 {
		if err := x.readGNU(d, addr); err != nil {
			return x, fmt.Errorf("reading the hash table (DT_GNU_HASH): %w", err)
		}
	}
	return x, nil
}

var errHash = errors.New("it contradicts itself")

// newHashTable returns a table for n symbols.
func newHashTable(d *dynamic, buckets, n uint64) (hashTable, error) {
	return hashTable{uint32(buckets), make([]uint32, n)}, d.r.hold(4 * n)
}

// put records the bucket of a symbol. A second bucket for one symbol is an error.
func (t *hashTable) put(symbol, bucket uint64) error {
	if symbol >= uint64(len(t.of)) || t.of[symbol] != 0 {
		return errHash
	}
	t.of[symbol] = uint32(bucket) + 1
	return nil
}

func (t *hashTable) has(symbol int, hash uint32) bool {
	return t.buckets > 0 && symbol < len(t.of) && t.of[symbol] == hash%t.buckets+1
}

// readSystem reads the table of the System V ABI: buckets, each with the first symbol
// of a chain.
func (x *exports) readSystem(d *dynamic, addr uint64) error {
	head, err := d.at("head", addr, 8, maxTable)
	if err != nil {
		return err
	}
	buckets, chains := word(head, 0), word(head, 4)
	table, err := d.at("buckets and chains", addr+8, 4*(buckets+chains), maxSymbols)
	if err != nil {
		return err
	}
	t, err := newHashTable(d, buckets, chains)
	if err != nil {
		return err
	}
	x.system, x.count = &t, int(chains)
	for b := range buckets {
		for i := word(table, int(4*b)); i != 0; i = word(table, int(4*(buckets+i))) {
			if err := t.put(i, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *exports) readGNU(d *dynamic, addr uint64) error {
	head, err := d.at("head", addr, 16, maxTable)
	if err != nil {
		return err
	}
	buckets, words := word(head, 0), word(head, 8)
	g := gnuTable{first: word(head, 4), shift: word(head, 12)}
	if buckets == 0 || words == 0 || words&(words-1) != 0 || g.shift > 31 {
		return errHash
	}
	if g.filter, err = d.at("filter", addr+16, 8*words, maxSymbols); err != nil {
		return err
	}
	addr += 16 + 8*words
	starts, err := d.at("buckets", addr, 4*buckets, maxSymbols)
	if err != nil {
		return err
	}
	last := uint64(0)
	for b := range buckets {
		last = max(last, word(starts, int(4*b)))
	}
	if last > 0 {
		if err := g.readHashes(d, addr+4*buckets, last); err != nil {
			return err
		}
	}
	x.gnu, x.count = &g, max(x.count, int(g.first)+len(g.hashes)/4)
	if g.hashTable, err = newHashTable(d, buckets, uint64(x.count)); err != nil {
		return err
	}
	return g.walk(starts)
}

// walk records the symbols of each bucket.
func (g *gnuTable) walk(starts []byte) error {
	for b := range uint64(len(starts) / 4) {
		i := word(starts, int(4*b))
		if i == 0 {
			continue
		}
		for ; ; i++ {
			if i < g.first || 4*(i-g.first) >= uint64(len(g.hashes)) {
				return errHash
			}
			if err := g.put(i, b); err != nil {
				return err
			}
			if g.hashes[4*(i-g.first)]&1 == 1 {
				break
			}
		}
	}
	return nil
}

func (g *gnuTable) readHashes(d *dynamic, addr, last uint64) (err error) {
	if last < g.first {
		return errHash
	}
	need := last - g.first + 1
	room := d.room(addr) / 4
	for {
		if need > room {
			return errHash
		}
		if g.hashes, err = d.at("chains", addr, 4*need, maxSymbols); err != nil {
			return err
		}
		for i := last - g.first; i < need; i++ {
			if g.hashes[4*i]&1 == 1 {
				g.hashes = g.hashes[:4*(i+1)]
				return nil
			}
		}
		last, need = g.first+need, min(2*need, max(room, need+1))
	}
}

// finds reports whether the loader finds a symbol by its name.
func (x exports) finds(name string, symbol int) bool {
	return (x.gnu != nil || x.system != nil) &&
		(x.gnu == nil || x.gnu.finds(name, symbol)) &&
		(x.system == nil || x.system.has(symbol, hashSystem(name)))
}

func (g *gnuTable) finds(name string, symbol int) bool {
	h := hashGNU(name)
	if !g.has(symbol, h) || word(g.hashes, 4*(symbol-int(g.first)))|1 != uint64(h)|1 {
		return false
	}
	filter := binary.LittleEndian.Uint64(g.filter[8*(int(h/64)%(len(g.filter)/8)):])
	return filter>>(h%64)&1 == 1 && filter>>(h>>g.shift%64)&1 == 1
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
