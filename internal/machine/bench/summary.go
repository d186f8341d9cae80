package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/curve"
)

// Summary is what one collective says about one library.
type Summary struct {
	Collective string
	Library    string
	PeakBW     float64 // the highest median of busbw, GB/s
	PeakBytes  int64   // where that is
	// The rest is the comparison with the first library: the findings, and the
	// sizes with the smallest and the largest ratio. Sizes is 0 for the first.
	Sizes    int
	Findings map[Finding]int
	Worst    SizedRatio
	Best     SizedRatio
	Median   float64 // of the ratios of all sizes
}

// SizedRatio is the ratio at a size.
type SizedRatio struct {
	Bytes int64
	Ratio float64
}

// Summarise returns what a collective says about a library, false where nothing
// was measured.
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

// words are how findings are said.
var words = map[Finding]string{
	Inside: "inside the spread", Faster: "faster", Slower: "slower", Unknown: "too few rounds",
}

// String says the finding in words.
func (f Finding) String() string { return words[f] }

// Table is every size of every collective, as text.
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

// shown are the libraries that have figures, and those that have ratios.
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

// SummaryTable is one line for each collective and library, as text.
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

// String says the ratio and its size: 0.950 at 64 KiB.
func (r SizedRatio) String() string {
	return fmt.Sprintf("%.3f at %s", r.Ratio, curve.HumanSize(r.Bytes))
}

// Counts says how many sizes have which finding: 22 inside the spread, 3 faster.
func (s Summary) Counts() string {
	var parts []string
	for _, f := range []Finding{Inside, Faster, Slower, Unknown} {
		if n := s.Findings[f]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, f))
		}
	}
	return strings.Join(parts, ", ")
}
