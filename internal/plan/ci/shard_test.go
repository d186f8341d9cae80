package ci_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"builder/internal/plan/ci"
	"builder/test/kit/check"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]ci.Shard{"1/1": {1, 1}, "2/3": {2, 3}, "3/3": {3, 3}, "10/256": {10, 256}} {
		got, err := ci.ParseShard(text)
		check.That(t, err == nil && got == want, "%s: %v, %v", text, got, err)
	}
	for text, says := range map[string]string{
		"": "not a shard", "x": "not a shard", "1": "not a shard", "/3": "not a shard", "1/": "not a shard", "1/2/3": "not a shard",
		"-1/3": "not a shard", "+1/3": "not a shard", "1 /3": "not a shard", "1.0/3": "not a shard", "1/99999999999": "not a shard",
		"0/3": "shard 0 of 3", "4/3": "shard 4 of 3", "0/0": "shard 0 of 0", "1/0": "shard 1 of 0",
	} {
		got, err := ci.ParseShard(text)
		check.That(t, err != nil && strings.Contains(err.Error(), says), "%q: %v, %v", text, got, err)
	}
}

// The shard of a cell must not change between releases of builder: runs of different
// days share their shards.
func TestShardsStay(t *testing.T) {
	for id, want := range map[string]int{
		"horovod-0.28.1+rocm5.7-tf2.13.0-cp311": 1,
		"rccl-5.4.3+rocm5.7-gfx90a":             2,
		"rccl-6.2.0+rocm6.2-gfx942":             3,
	} {
		for i := range 3 {
			s := (ci.Shard{Index: i + 1, Count: 3})
			check.That(t, s.Holds(id) == (s.Index == want), "%s: %v holds it: %v", id, s, s.Holds(id))
		}
	}
}

// Each cell is in exactly one shard, whatever the other cells are.
func TestEachInOneShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, n := rapid.String().Draw(t, "id"), rapid.IntRange(1, 40).Draw(t, "n")
		held := 0
		for i := range n {
			if (ci.Shard{Index: i + 1, Count: n}).Holds(id) {
				held++
			}
		}
		if held != 1 {
			t.Errorf("%q is in %d of %d shards", id, held, n)
		}
	})
}
