package benchpage

import (
	"fmt"
	"slices"

	"builder/internal/machine/bench"
	"builder/internal/machine/curve"
	"builder/internal/view/chart"
)

// A section is one collective.
type section struct {
	Name      string
	Libraries []library // the measured ones, in their order
	Others    []library // those compared with the first
	Summaries []summary
	Figures   []figure
	Rows      []row
	Interval  string // name of the intervals beside the ratios
}

// summary is one line of the overview.
type summary struct {
	bench.Summary
	Style int
	Key   string
}

// A figure is a picture in all its shapes, with a caption.
type figure struct {
	Caption string
	Note    string
	Charts  []chart.Chart
}

// A row is one size. Figures and Ratios have an entry for each library, nil if it was
// not measured.
type row struct {
	Bytes   int64
	Figures []*bench.Figure
	Ratios  []*finding
}

// A finding is a ratio with its word in a row. Most ratios are inside the spread and
// show only that.
type finding struct {
	bench.Ratio
	Class, Word string
}

func newFinding(r bench.Ratio, ok bool) *finding {
	if !ok {
		return nil
	}
	f := finding{r, "shown", r.Finding.String()}
	switch r.Finding {
	case bench.Inside:
		f.Class, f.Word = "quiet", "inside"
	case bench.Unknown:
		f.Class = "quiet"
	case bench.Faster:
		f.Word = "▲ " + f.Word
	case bench.Slower:
		f.Word = "▼ " + f.Word
	}
	return &f
}

func (p page) section(c bench.Collective) section {
	s := section{Name: c.Name}
	for _, l := range p.Libraries {
		sum, measured := c.Summarise(l.Label)
		if !measured {
			continue
		}
		s.Libraries = append(s.Libraries, l)
		s.Summaries = append(s.Summaries, summary{sum, l.Style, l.Key})
		if sum.Sizes > 0 {
			s.Others = append(s.Others, l)
		}
	}
	s.rows(c)
	for _, f := range []figure{s.bandwidth(c), s.ratios(c, p.First), s.latency(c)} {
		if len(f.Charts) > 0 {
			s.Figures = append(s.Figures, f)
		}
	}
	return s
}

func (s *section) rows(c bench.Collective) {
	var confidences []float64
	for _, size := range c.Sizes {
		r := row{Bytes: size.Bytes}
		for _, l := range s.Libraries {
			r.Figures = append(r.Figures, figureOf(size, l.Label))
		}
		for _, l := range s.Others {
			found := newFinding(size.Ratio(l.Label))
			if found != nil {
				confidences = append(confidences, found.Interval.Confidence)
			}
			r.Ratios = append(r.Ratios, found)
		}
		s.Rows = append(s.Rows, r)
	}
	s.Interval = intervalName(confidences)
}

// intervalName names the intervals of a table. They differ if a library was measured in
// fewer rounds than another.
func intervalName(confidences []float64) string {
	slices.Sort(confidences)
	switch all := slices.Compact(confidences); {
	case len(all) > 1:
		return "interval"
	case len(all) == 0 || all[0] == 0:
		return "lowest–highest"
	default:
		return fmt.Sprintf("%.1f %% interval", 100*all[0])
	}
}

func figureOf(s bench.Size, library string) *bench.Figure {
	if f, ok := s.Figure(library); ok {
		return &f
	}
	return nil
}

// bandwidth plots busbw over size. Lines and marks are medians; the band spans minimum
// and maximum.
func (s *section) bandwidth(c bench.Collective) figure {
	p := chart.Plot{YTitle: "GB/s", Least: 1e-9, About: "Bus bandwidth of " + c.Name + " over size. "}
	for _, sum := range s.Summaries {
		p.About += fmt.Sprintf("%s reaches %s GB/s at %s. ", sum.Library, curve.Digits(sum.PeakBW), curve.HumanSize(sum.PeakBytes))
	}
	p.Series = s.series(s.Libraries, c, func(size bench.Size, f bench.Figure) (chart.Point, bool) {
		title := fmt.Sprintf("%s, %s: %s GB/s (%s to %s)", f.Library, curve.HumanSize(size.Bytes),
			curve.Digits(f.BusBW.Median), curve.Digits(f.BusBW.Min), curve.Digits(f.BusBW.Max))
		return point(size.Bytes, f.BusBW, true, title), true
	})
	return figure{Caption: "Bus bandwidth over size", Note: "higher is better; line: median of the rounds, band: lowest to highest", Charts: p.Charts()}
}

// latency plots time over size for small messages, where bandwidth is meaningless.
func (s *section) latency(c bench.Collective) figure {
	p := chart.Plot{Low: true, YTitle: "µs", Least: 1e-9, About: "Time of " + c.Name + " for sizes below " + curve.HumanSize(bench.Small) + "."}
	p.Series = s.series(s.Libraries, c, func(size bench.Size, f bench.Figure) (chart.Point, bool) {
		title := fmt.Sprintf("%s, %s: %s µs (%s to %s)", f.Library, curve.HumanSize(size.Bytes),
			curve.Digits(f.Microseconds.Median), curve.Digits(f.Microseconds.Min), curve.Digits(f.Microseconds.Max))
		return point(size.Bytes, f.Microseconds, true, title), size.Bytes < bench.Small
	})
	return figure{Caption: "Time of small messages", Note: "lower is better", Charts: p.Charts()}
}

// ratios plots the ratio of every library to the first. A filled mark is a difference;
// a hollow mark is inside the spread.
func (s *section) ratios(c bench.Collective, first string) figure {
	p := chart.Plot{YTitle: "ratio", Around: 1, Least: 0.05, Whisker: true, About: fmt.Sprintf("Bus bandwidth of %s, relative to %s. ", c.Name, first)}
	for _, sum := range s.Summaries {
		if sum.Sizes > 0 {
			p.About += fmt.Sprintf("%s: lowest %s, highest %s; %s. ", sum.Library, sum.Worst, sum.Best, sum.Counts())
		}
	}
	p.Series = s.series(s.Others, c, func(size bench.Size, f bench.Figure) (chart.Point, bool) {
		r, ok := size.Ratio(f.Library)
		title := fmt.Sprintf("%s over %s, %s: %.3f (%.3f to %.3f), %s", f.Library, first, curve.HumanSize(size.Bytes),
			r.Speed.Median, r.Speed.Min, r.Speed.Max, r.Finding)
		return point(size.Bytes, r.Speed, r.Finding == bench.Faster || r.Finding == bench.Slower, title), ok
	})
	note := "above 1 is faster; whiskers: lowest to highest of the rounds; filled mark: outside the spread, hollow: inside"
	return figure{Caption: "Ratio to " + first, Note: note, Charts: p.Charts()}
}

// point returns the mark of a spread.
func point(bytes int64, s bench.Spread, filled bool, title string) chart.Point {
	return chart.Point{Bytes: bytes, Low: s.Min, Value: s.Median, High: s.Max, Filled: filled, Title: title}
}

func (s *section) series(libraries []library, c bench.Collective, pick func(bench.Size, bench.Figure) (chart.Point, bool)) []chart.Series {
	var all []chart.Series
	for _, l := range libraries {
		one := chart.Series{Style: l.Style}
		for _, size := range c.Sizes {
			if f, ok := size.Figure(l.Label); ok {
				if pt, ok := pick(size, f); ok {
					one.Points = append(one.Points, pt)
				}
			}
		}
		if len(one.Points) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// Line summarises the comparison of one library in a sentence.
func (s summary) Line(first string) string {
	if s.Sizes == 0 {
		return ""
	}
	return fmt.Sprintf("%s against %s: ratio %.3f in the middle of %d sizes, lowest %s, highest %s; %s",
		s.Library, first, s.Median, s.Sizes, s.Worst, s.Best, s.Counts())
}

// Found counts the sizes of a finding.
func (s summary) Found(f bench.Finding) int { return s.Findings[f] }
