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

// Holds reports whether the cell with the given id is in the shard: the first 8 bytes of
// the id's sha256 determine it.
func (s Shard) Holds(id string) bool {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index-1)
}
