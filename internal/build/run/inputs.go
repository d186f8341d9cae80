package run

import (
	"fmt"
	"slices"

	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
)

// waves orders the indexes of entries so that the inputs of an entry are in an earlier
// wave. Entries in a cycle come last. They fail later because their inputs have no
// result.
func waves(entries []lock.Entry) [][]int {
	pending := map[string]bool{}
	var left []int
	for i, e := range entries {
		pending[e.Key()] = true
		left = append(left, i)
	}
	waits := func(i int) bool {
		return slices.ContainsFunc(entries[i].Inputs, func(in lock.Input) bool { return pending[in.Key] })
	}
	var order [][]int
	for len(left) > 0 {
		var wave, rest []int
		for _, i := range left {
			if waits(i) {
				rest = append(rest, i)
			} else {
				wave = append(wave, i)
			}
		}
		if len(wave) == 0 {
			return append(order, rest)
		}
		for _, i := range wave {
			delete(pending, entries[i].Key())
		}
		order, left = append(order, wave), rest
	}
	return order
}

// inputsOf returns the wheels of an entry's inputs from the finished outcomes.
func inputsOf(e lock.Entry, done map[string]*Outcome) ([]artifact.Artifact, error) {
	var wheels []artifact.Artifact
	for _, in := range e.Inputs {
		o := done[in.Key]
		switch {
		case o == nil:
			return nil, &inputError{fmt.Sprintf("its input %s is not part of the run", in.ID)}
		case o.Err != nil || len(o.Artifacts) == 0:
			return nil, &inputError{fmt.Sprintf("its input %s has no result", in.ID)}
		}
		wheels = append(wheels, o.Artifacts[0])
	}
	return wheels, nil
}
