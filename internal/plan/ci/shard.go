package ci

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Shard is one of several parts of a matrix: number Index of Count, from 1.
type Shard struct{ Index, Count int }

// ParseShard reads i/n.
func ParseShard(text string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	i, err1 := strconv.ParseUint(index, 10, 31)
	n, err2 := strconv.ParseUint(count, 10, 31)
	if errors.Join(err1, err2) != nil {
		return Shard{}, fmt.Errorf("%q is not a part such as 1/3", text)
	}
	if i < 1 || i > n {
		return Shard{}, fmt.Errorf("there is no part %d of %d", i, n)
	}
	return Shard{Index: int(i), Count: int(n)}, nil
}

// String writes the shard as it is read.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Holds reports whether the cell with this id is in the shard.
func (s Shard) Holds(id string) bool { return number(id)%uint64(s.Count) == uint64(s.Index-1) }

// number is what the shard of a cell follows from.
func number(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// ShardsFor returns the smallest number of shards none of which holds more than
// limit of the ids, 0 if as many shards as there are ids are too few.
func ShardsFor(ids []string, limit int) int {
	numbers := make([]uint64, len(ids))
	for i, id := range ids {
		numbers[i] = number(id)
	}
	for n := max(1, (len(ids)+limit-1)/limit); n <= max(1, len(ids)); n++ {
		if fullest(numbers, n) <= limit {
			return n
		}
	}
	return 0
}

// fullest counts the members of the largest of n shards.
func fullest(numbers []uint64, n int) int {
	most, count := 0, make([]int, n)
	for _, x := range numbers {
		i := x % uint64(n)
		count[i]++
		most = max(most, count[i])
	}
	return most
}
