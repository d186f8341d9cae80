package ci

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Shard is one of Count parts of a matrix. Index starts at 1.
type Shard struct{ Index, Count int }

// ParseShard parses i/n.
func ParseShard(text string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	i, err1 := strconv.ParseUint(index, 10, 31)
	n, err2 := strconv.ParseUint(count, 10, 31)
	if errors.Join(err1, err2) != nil {
		return Shard{}, fmt.Errorf("%q is not a shard such as 1/3", text)
	}
	if i < 1 || i > n {
		return Shard{}, fmt.Errorf("shard %d of %d does not exist", i, n)
	}
	return Shard{Index: int(i), Count: int(n)}, nil
}

// String returns the shard in the form read by [ParseShard].
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// Holds reports whether the cell with the given id is in the shard.
func (s Shard) Holds(id string) bool { return number(id)%uint64(s.Count) == uint64(s.Index-1) }

// number returns the first 8 bytes of the id's sha256. They determine its shard.
func number(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// ShardsFor returns the smallest number of shards for which no shard holds more than
// limit ids. It returns 0 if even len(ids) shards are too few.
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

// fullest returns the size of the largest of n shards.
func fullest(numbers []uint64, n int) int {
	most, count := 0, make([]int, n)
	for _, x := range numbers {
		i := x % uint64(n)
		count[i]++
		most = max(most, count[i])
	}
	return most
}
