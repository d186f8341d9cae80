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
)

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
