package device

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/base/diag"
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

// A Size is the speed of one library, or of two, at one size: medians of the rounds.
type Size struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	BusBW      float64 `json:"busbw"` // GB/s
	Other      float64 `json:"other,omitempty"`
	Ratio      float64 `json:"ratio,omitempty"`

	slower int // rounds in which the library was slower than the other one
}

// Measure measures a collective with the library, and in turn with the other one if there
// is one. Values that are wrong or were not checked are an error.
func (d *Setup) Measure(ctx context.Context, collective string) ([]Size, error) {
	if v, lacks := d.lacks(1); lacks {
		return nil, refusal(v)
	}
	ours, theirs, stopped := d.duel(ctx, collective, fewRounds)
	if stopped != nil {
		return nil, refusal(*stopped)
	}
	for _, m := range slices.Concat(ours, theirs) {
		if problems := wrongValues(m.Report); len(problems) > 0 {
			return nil, diag.Errorf(diag.Gate, "%s: %s", collective, strings.Join(problems, "; "))
		}
	}
	sizes, err := compare(collective, ours, theirs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", collective, err)
	}
	return sizes, nil
}

func refusal(v verdict.Verdict) error {
	return diag.Errorf(diag.Gate, "%s", v.Evidence).WithHint("%s", v.Remedy)
}

// duel runs both libraries alternately, or the only one. The order changes every round,
// and heat, clocks and other load affect both alike.
func (d *Setup) duel(ctx context.Context, collective string, rounds int) (ours, theirs []nccltests.Measured, stopped *verdict.Verdict) {
	for round := range rounds {
		for turn := range 2 {
			other, library := turn != round%2, d.Library
			if other {
				library = d.Against
			}
			if library == "" {
				continue
			}
			sweep := d.sweep(collective, library, busbwBytes, d.MaxBytes)
			sweep.Factor = busbwFactor
			m, err := d.run(ctx, sweep)
			switch {
			case err != nil && other:
				v := verdict.Unmeasured("%s with %s: %v", collective, d.Baseline, err).Because("give --against a library for this host")
				return nil, nil, &v
			case err != nil:
				v := failedRun(collective, err)
				return nil, nil, &v
			case other:
				theirs = append(theirs, m)
			default:
				ours = append(ours, m)
			}
		}
	}
	return ours, theirs, nil
}

// compare returns the medians of every size, and their ratio if there are two libraries.
func compare(collective string, ours, theirs []nccltests.Measured) ([]Size, error) {
	mine, other := speeds(ours), speeds(theirs)
	if len(mine) == 0 || len(theirs) > 0 && len(mine) != len(other) {
		return nil, fmt.Errorf("the libraries have %d and %d measured sizes, and must have the same", len(mine), len(other))
	}
	var sizes []Size
	for _, bytes := range slices.Sorted(maps.Keys(mine)) {
		s := Size{Collective: collective, Bytes: bytes, BusBW: median(mine[bytes])}
		if len(theirs) > 0 {
			if s.Other = median(other[bytes]); s.Other <= 0 {
				return nil, fmt.Errorf("the other library has no measurement at %s", SizeText(bytes))
			}
			s.Ratio = s.BusBW / s.Other
			for round, speed := range mine[bytes] {
				if round >= len(other[bytes]) || speed < other[bytes][round] {
					s.slower++
				}
			}
		}
		sizes = append(sizes, s)
	}
	return sizes, nil
}

// speeds returns the bus bandwidth of every size in each run, out of place.
func speeds(runs []nccltests.Measured) map[int64][]float64 {
	all := map[int64][]float64{}
	for _, m := range runs {
		for _, row := range m.Report.Rows {
			all[row.Bytes] = append(all[row.Bytes], row.OutOfPlace.BusBW)
		}
	}
	return all
}

// median returns the median, or 0 for no values.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// ratioText describes the first, the last and the worst size.
func ratioText(sizes []Size) string {
	worst := slices.MinFunc(sizes, func(a, b Size) int { return cmp.Compare(a.Ratio, b.Ratio) })
	first, last := sizes[0], sizes[len(sizes)-1]
	return fmt.Sprintf("%.2f at %s, %.2f at %s (%.1f of %.1f GB/s), lowest %.2f at %s",
		first.Ratio, SizeText(first.Bytes), last.Ratio, SizeText(last.Bytes), last.BusBW, last.Other, worst.Ratio, SizeText(worst.Bytes))
}
