package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/curve"
)

// Summary holds the results of one library in one collective.
type Summary struct {
	Collective string
	Library    string
	PeakBW     float64 // highest median of busbw, GB/s
	PeakBytes  int64   // size of PeakBW
	// The other fields compare with the first library: the number of sizes, the
	// findings, and the sizes with the lowest and highest ratio. Sizes is 0 for the
	// first library.
	Sizes    int
	Findings map[Finding]int
	Worst    SizedRatio
	Best     SizedRatio
	Median   float64 // median ratio over all sizes
}

// SizedRatio is a ratio at one size.
type SizedRatio struct {
	Bytes int64
	Ratio float64
}

// Summarise returns the summary of a library, or false if it has no measurements.
func (c Collective) Summarise(library string) (Summary, bool) {
	s := Summary{Collective: c.Name, Library: library, Findings: map[Finding]int{}}
	var ratios []SizedRatio
	measured := false
	for _, size := range c.Sizes {
		if f, ok := size.Figure(library); ok {
			if !measured || f.BusBW.Median > s.PeakBW {
				s.PeakBW, s.PeakBytes = f.BusBW.Median, size.Bytes
			}
			measured = true
		}
		if r, ok := size.Ratio(library); ok {
			s.Findings[r.Finding]++
			ratios = append(ratios, SizedRatio{size.Bytes, r.Speed.Median})
		}
	}
	if s.Sizes = len(ratios); s.Sizes > 0 {
		slices.SortStableFunc(ratios, func(a, b SizedRatio) int { return cmp.Compare(a.Ratio, b.Ratio) })
		s.Worst, s.Best = ratios[0], ratios[len(ratios)-1]
		s.Median = (ratios[(len(ratios)-1)/2].Ratio + ratios[len(ratios)/2].Ratio) / 2
	}
	return s, measured
}

// words are the findings in English.
var words = map[Finding]string{
	Inside: "inside the spread", Faster: "faster", Slower: "slower", Unknown: "too few rounds",
}

// String returns the finding in English.
func (f Finding) String() string { return words[f] }

// Table returns a text table with a row for every size of every collective.
func Table(r Result) (header []string, rows [][]string) {
	measured, compared := r.shown()
	header = []string{"collective", "size"}
	for _, label := range measured {
		header = append(header, label+" us", label+" GB/s")
	}
	for _, label := range compared {
		header = append(header, label+" ratio", "spread", "finding")
	}
	for _, c := range r.Collectives {
		for _, s := range c.Sizes {
			rows = append(rows, append([]string{c.Name, curve.HumanSize(s.Bytes)}, s.cells(measured, compared)...))
		}
	}
	return header, rows
}

// shown returns the libraries with figures, and those with ratios.
func (r Result) shown() (measured, compared []string) {
	for _, l := range r.Libraries {
		figures, ratios := false, false
		for _, c := range r.Collectives {
			s, ok := c.Summarise(l.Label)
			figures, ratios = figures || ok, ratios || s.Sizes > 0
		}
		if figures {
			measured = append(measured, l.Label)
		}
		if ratios {
			compared = append(compared, l.Label)
		}
	}
	return measured, compared
}

func (s Size) cells(measured, compared []string) (cells []string) {
	for _, label := range measured {
		if f, ok := s.Figure(label); ok {
			cells = append(cells, curve.Digits(f.Microseconds.Median), curve.Digits(f.BusBW.Median))
		} else {
			cells = append(cells, "-", "-")
		}
	}
	for _, label := range compared {
		if r, ok := s.Ratio(label); ok {
			spread := fmt.Sprintf("%.3f..%.3f", r.Speed.Min, r.Speed.Max)
			cells = append(cells, fmt.Sprintf("%.3f", r.Speed.Median), spread, r.Finding.String())
		} else {
			cells = append(cells, "-", "-", "-")
		}
	}
	return cells
}

// SummaryTable returns a text table with a row for each collective and library.
func SummaryTable(r Result) (header []string, rows [][]string) {
	header = []string{"collective", "library", "highest busbw", "ratio", "lowest", "highest", "sizes"}
	for _, c := range r.Collectives {
		for _, l := range r.Libraries {
			if s, ok := c.Summarise(l.Label); ok {
				rows = append(rows, s.cells())
			}
		}
	}
	return header, rows
}

func (s Summary) cells() []string {
	peak := fmt.Sprintf("%s GB/s at %s", curve.Digits(s.PeakBW), curve.HumanSize(s.PeakBytes))
	if s.Sizes == 0 {
		return []string{s.Collective, s.Library, peak, "-", "-", "-", "-"}
	}
	return []string{
		s.Collective, s.Library, peak,
		fmt.Sprintf("%.3f", s.Median), s.Worst.String(), s.Best.String(), s.Counts(),
	}
}

// String formats the ratio and its size, such as "0.950 at 64 KiB".
func (r SizedRatio) String() string {
	return fmt.Sprintf("%.3f at %s", r.Ratio, curve.HumanSize(r.Bytes))
}

// Counts formats the number of sizes for each finding, such as "22 inside the spread, 3
// faster".
func (s Summary) Counts() string {
	var parts []string
	for _, f := range []Finding{Inside, Faster, Slower, Unknown} {
		if n := s.Findings[f]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, f))
		}
	}
	return strings.Join(parts, ", ")
}
