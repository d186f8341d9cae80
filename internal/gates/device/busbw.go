package device

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/machine/nccltests"
	"builder/internal/plan/recipe"
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

// CheckBusbw compares the speed of the library with that of the library it replaces,
// both measured alternately on this host.
func CheckBusbw(ctx context.Context, d *Setup, e recipe.Expect) (judged verdict.Verdict) {
	defer func() { d.tell(&judged) }()
	if a, lacks := d.lacks(2); lacks {
		return a
	}
	switch {
	case d.Against == "":
		return verdict.Unmeasured("no library to compare with: a bandwidth alone does not judge a library").
			Because("name the library to replace: --against DIR|WHEEL|LIB")
	case d.MaxBytes < busbwBytes:
		return verdict.Unmeasured("sizes up to %s are too small to compare", SizeText(d.MaxBytes)).
			Because("raise --max-bytes to at least %s", SizeText(busbwBytes))
	}
	var problems, seen, blind []string
	other := ""
	for _, collective := range e.Collectives {
		c, stopped := d.compareTwice(ctx, collective)
		if stopped != nil {
			return *stopped
		}
		for _, r := range short(c.ratios, d.Tolerance) {
			text := fmt.Sprintf("%s at %s: %.1f GB/s, %s has %.1f: ratio %.2f by the medians of %d rounds, below %.2f",
				collective, SizeText(r.bytes), r.ours, d.Baseline, r.theirs, r.ratio, len(c.ours), d.Tolerance)
			undecided := fmt.Sprintf("%s, but slower in %d of %d rounds only", text, r.slower, r.rounds)
			switch {
			case r.slower >= r.rounds-1:
				problems = append(problems, text)
			case r.ratio < gross:
				blind = append(blind, undecided)
			default:
				seen = append(seen, undecided)
			}
		}
		seen = append(seen, fmt.Sprintf("%s against %s, medians of %d rounds in turn: %s", collective, d.Baseline, len(c.ours), ratioText(c.ratios)))
		other = cmp.Or(other, c.otherRelease(d.Baseline))
	}
	if other != "" && len(problems) > 0 {
		problems = append(problems, other)
	} else if other != "" {
		seen = append(seen, other)
	}
	if len(problems) == 0 && len(blind) > 0 {
		return verdict.Unmeasured("the rounds differ too much: %s", strings.Join(blind, "; ")).
			Because("run the gate again on a quieter host")
	}
	return verdict.Judge(append(problems, blind...), seen)
}

// A comparison holds the rounds of both libraries and the ratios of their medians.
type comparison struct {
	ours, theirs []nccltests.Measured
	ratios       []ratio
}

// otherRelease returns a note if the two libraries are of different releases, otherwise
// "". It returns "" also if a release is unknown.
func (c comparison) otherRelease(baseline string) string {
	ours, theirs := nccltests.ReleaseOf(c.ours[0].Version()), nccltests.ReleaseOf(c.theirs[0].Version())
	if ours == theirs || ours == "" || theirs == "" {
		return ""
	}
	return fmt.Sprintf("the artifact is release %s, %s is %s: the comparison covers the releases as well as the builds", ours, baseline, theirs)
}

// compareTwice compares both libraries. If a size is too slow, it compares again with
// more rounds and judges all rounds together.
func (d *Setup) compareTwice(ctx context.Context, collective string) (c comparison, stopped *verdict.Verdict) {
	for _, more := range []int{d.Rounds, again * d.Rounds} {
		ours, theirs, stopped := d.duel(ctx, collective, more)
		if stopped != nil {
			return c, stopped
		}
		c.ours, c.theirs = append(c.ours, ours...), append(c.theirs, theirs...)
		var err error
		if c.ratios, err = compare(c.ours, c.theirs); err != nil {
			a := verdict.Unmeasured("%s: %v", collective, err)
			return c, &a
		}
		if len(short(c.ratios, d.Tolerance)) == 0 {
			break
		}
	}
	return c, nil
}

// short returns the sizes at which the ratio is below the tolerance.
func short(ratios []ratio, tolerance float64) []ratio {
	return slices.DeleteFunc(slices.Clone(ratios), func(r ratio) bool { return r.ratio >= tolerance })
}

// duel runs both libraries alternately, or the only one. The order changes every round, and heat, clocks
// and other load affect both alike.
func (d *Setup) duel(ctx context.Context, collective string, rounds int) (ours, theirs []nccltests.Measured, stopped *verdict.Verdict) {
	run := func(library string, into *[]nccltests.Measured) error {
		sweep := d.sweep(collective, library, busbwBytes, d.MaxBytes, nil)
		sweep.Factor = busbwFactor
		m, err := d.run(ctx, sweep)
		if err == nil {
			*into = append(*into, m)
		}
		return err
	}
	mine := func() *verdict.Verdict {
		if err := run(d.Library, &ours); err != nil {
			a := failedRun(collective, err)
			return &a
		}
		return nil
	}
	other := func() *verdict.Verdict {
		if d.Against == "" {
			return nil
		}
		if err := run(d.Against, &theirs); err != nil {
			a := verdict.Unmeasured("%s with %s: %v", collective, d.Baseline, err).Because("give --against a library for this host")
			return &a
		}
		return nil
	}
	for round := range rounds {
		turns := []func() *verdict.Verdict{mine, other}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if a := turn(); a != nil {
				return nil, nil, a
			}
		}
	}
	return ours, theirs, nil
}

// ratio holds the medians of both libraries at one size, and the number of rounds in
// which ours was slower.
type ratio struct {
	bytes          int64
	ours, theirs   float64 // GB/s
	ratio          float64
	slower, rounds int
}

// compare returns the medians of both libraries for every size.
func compare(ours, theirs []nccltests.Measured) ([]ratio, error) {
	mine, other := medians(ours), medians(theirs)
	var ratios []ratio
	for _, bytes := range slices.Sorted(maps.Keys(mine)) {
		if other[bytes] <= 0 {
			return nil, fmt.Errorf("the other library has no measurement at %s", SizeText(bytes))
		}
		slower := 0
		for round := range ours {
			if speed(ours[round], bytes) < speed(theirs[round], bytes) {
				slower++
			}
		}
		ratios = append(ratios, ratio{bytes, mine[bytes], other[bytes], mine[bytes] / other[bytes], slower, len(ours)})
	}
	if len(ratios) == 0 || len(mine) != len(other) {
		return nil, fmt.Errorf("the libraries have %d and %d measured sizes, and must have the same", len(mine), len(other))
	}
	return ratios, nil
}

// speed returns the bus bandwidth of a size in one run, or 0.
func speed(m nccltests.Measured, bytes int64) float64 {
	for _, row := range m.Report.Rows {
		if row.Bytes == bytes {
			return halfOf(row).BusBW
		}
	}
	return 0
}

// medians returns the median bus bandwidth of every size, out of place if measured.
func medians(runs []nccltests.Measured) map[int64]float64 {
	all := map[int64][]float64{}
	for _, m := range runs {
		for _, row := range m.Report.Rows {
			all[row.Bytes] = append(all[row.Bytes], halfOf(row).BusBW)
		}
	}
	result := map[int64]float64{}
	for bytes, values := range all {
		slices.Sort(values)
		n := len(values)
		result[bytes] = (values[(n-1)/2] + values[n/2]) / 2
	}
	return result
}

// ratioText describes the first, the last and the worst size.
func ratioText(ratios []ratio) string {
	worst := slices.MinFunc(ratios, func(a, b ratio) int {
		switch {
		case a.ratio < b.ratio:
			return -1
		case a.ratio > b.ratio:
			return 1
		}
		return 0
	})
	first, last := ratios[0], ratios[len(ratios)-1]
	return strings.Join([]string{
		fmt.Sprintf("%.2f at %s", first.ratio, SizeText(first.bytes)),
		fmt.Sprintf("%.2f at %s (%.1f of %.1f GB/s)", last.ratio, SizeText(last.bytes), last.ours, last.theirs),
		fmt.Sprintf("lowest %.2f at %s", worst.ratio, SizeText(worst.bytes)),
	}, ", ")
}

// halfOf returns the half of a row used to compare libraries: out of place if measured.
func halfOf(row nccltests.Row) nccltests.Timing {
	if row.OutOfPlace.Measured {
		return row.OutOfPlace
	}
	return row.InPlace
}
