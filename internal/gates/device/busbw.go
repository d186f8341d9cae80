package device

import (
	"context"
	"fmt"
	"slices"

	"builder/internal/gates/verdict"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
)

// fewRounds is the first number of rounds of a comparison, and tolerance the ratio ours/theirs below
// which a size is slow and more rounds are compared.
const (
	fewRounds = 3
	tolerance = 0.95
)

// again is how many times more rounds are run if a size is too slow. At 1 MiB the
// rounds of one library differ by a third (reduce_scatter of NCCL 2.28.9 and 2.29.7 on
// two H200 with the protocol LL), so the median of three rounds depends on chance.
const again = 3

// gross is the ratio below which a size needs an answer: if it is slower in some rounds
// only, the gate has not measured. At larger ratios it passes with a note.
//
// A size is slower if it was slower in all rounds but one at most. With equal libraries
// and twelve rounds this happens once in 315 sizes, and a comparison of six collectives
// has 36. The ratio alone does not decide: with NCCL 2.28.9 of the vendor and of this
// project on two H100, reduce_scatter had 0.93 to 0.94 at 1 to 4 MiB by twelve rounds, and
// 1.04 to 1.26 by nine rounds a few minutes later.
const gross = 0.8

// busbwBytes is the smallest compared size. Below it the time is the launch of a
// kernel, with more noise than any difference.
const busbwBytes = 1 << 20

// busbwFactor leaves a handful of sizes: 1, 4, 16, 64 and 256 MiB, and 1 GiB.
const busbwFactor = 4

// Busbw compares the speed of the library with that of the library it replaces, both
// measured alternately on this host.
var Busbw = Check{2, checkBusbw}

func checkBusbw(ctx context.Context, d *Setup, e recipe.Expect) verdict.Verdict {
	switch {
	case d.Against == "":
		return verdict.Unmeasured("no library to compare with: a bandwidth alone does not judge a library").
			Because("name the library to replace: --against DIR|WHEEL|LIB")
	case d.MaxBytes < busbwBytes:
		return verdict.Unmeasured("sizes up to %s are too small to compare", SizeText(d.MaxBytes)).
			Because("raise --max-bytes to at least %s", SizeText(busbwBytes))
	}
	var problems, seen, blind []string
	for _, collective := range e.Collectives {
		sizes, rounds, stopped := d.compareTwice(ctx, collective)
		if stopped != nil {
			return *stopped
		}
		for _, s := range sizes {
			if !slow(s) {
				continue
			}
			text := fmt.Sprintf("%s at %s: %.1f GB/s, %s has %.1f: ratio %.2f by the medians of %d rounds, below %.2f",
				collective, SizeText(s.Bytes), s.BusBW, d.Baseline, s.Other, s.Ratio, rounds, tolerance)
			undecided := fmt.Sprintf("%s, but slower in %d of %d rounds only", text, s.slower, rounds)
			switch {
			case s.slower >= rounds-1:
				problems = append(problems, text)
			case s.Ratio < gross:
				blind = append(blind, undecided)
			default:
				seen = append(seen, undecided)
			}
		}
		seen = append(seen, fmt.Sprintf("%s against %s, medians of %d rounds in turn: %s", collective, d.Baseline, rounds, ratioText(sizes)))
	}
	v := verdict.Weigh(problems, blind, seen)
	if v.Status == verdict.NotMeasured {
		return v.Because("the rounds differ too much: run the gate again on a quieter host")
	}
	return v
}

// compareTwice compares both libraries. If a size is too slow, it compares again with
// more rounds and judges all rounds together.
func (d *Setup) compareTwice(ctx context.Context, collective string) (sizes []Size, rounds int, stopped *verdict.Verdict) {
	var ours, theirs []nccltests.Measured
	for _, more := range []int{fewRounds, again * fewRounds} {
		mine, other, stopped := d.duel(ctx, collective, more)
		if stopped != nil {
			return nil, 0, stopped
		}
		ours, theirs = append(ours, mine...), append(theirs, other...)
		var err error
		if sizes, err = compare(collective, ours, theirs); err != nil {
			v := verdict.Unmeasured("%s: %v", collective, err)
			return nil, 0, &v
		}
		if !slices.ContainsFunc(sizes, slow) {
			break
		}
	}
	return sizes, len(ours), nil
}

func slow(s Size) bool { return s.Ratio < tolerance }
