package reportpage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"builder/internal/machine/curve"
	"builder/internal/view/chart"
	"builder/internal/view/report"
)

// bandwidth holds the measurements of one collective by one gate: a picture and a table
// of the same figures.
type bandwidth struct {
	Collective string
	Gate       string
	Note       string
	Lines      []line
	Charts     []chart.Chart
	Rows       []figures
}

// line is one curve in the legend and in the header of a column.
type line struct {
	Label string
	Style int
	Key   string // the mark in the legend
}

// figures holds the figures of one size in the order of the lines; "–" stands for a
// missing one.
type figures struct {
	Bytes int64
	BusBW []string
}

// newBandwidths groups the curves of a verdict by collective.
func newBandwidths(v report.Verdict) []bandwidth {
	var names []string
	of := map[string][]curve.Curve{}
	for _, c := range v.Measured {
		if of[c.Collective] == nil {
			names = append(names, c.Collective)
		}
		of[c.Collective] = append(of[c.Collective], c)
	}
	var all []bandwidth
	for _, name := range names {
		all = append(all, newBandwidth(v.Gate, of[name]))
	}
	return all
}

// newBandwidth shows the curves of one collective. The baseline is grey, as in the page
// of bench.
func newBandwidth(gate string, curves []curve.Curve) bandwidth {
	first := curves[0]
	samePlace := !slices.ContainsFunc(curves, func(c curve.Curve) bool { return c.Place != first.Place })
	b := bandwidth{Collective: first.Collective, Gate: gate, Note: note(gate, first, samePlace), Rows: table(curves)}
	plot := chart.Plot{YTitle: "GB/s", Least: 1e-9, About: fmt.Sprintf("Bus bandwidth of %s over size, by gate %s.", first.Collective, gate)}
	own := 0
	for _, c := range curves {
		l := line{Label: label(c, samePlace)}
		if !c.Baseline {
			l.Style = 1 + own%(chart.Styles-1)
			own++
		}
		l.Key = chart.Key(l.Style)
		b.Lines = append(b.Lines, l)
		plot.Series = append(plot.Series, series(c, l))
		peak := c.Peak()
		plot.About += fmt.Sprintf(" %s reaches %s GB/s at %s.", l.Label, curve.Digits(peak.BusBW), curve.HumanSize(peak.Bytes))
	}
	b.Charts = plot.Charts()
	return b
}

// note describes the figures of a picture.
func note(gate string, c curve.Curve, samePlace bool) string {
	words := []string{"gate " + gate, "higher is better"}
	if c.Rounds > 1 {
		words = append(words, fmt.Sprintf("medians of %d rounds", c.Rounds))
	}
	if samePlace {
		words = append(words, string(c.Place))
	}
	return strings.Join(words, ", ")
}

// label names the library of a curve and marks the baseline.
func label(c curve.Curve, samePlace bool) string {
	text := c.Library
	if c.Baseline {
		text += " (baseline)"
	}
	if !samePlace {
		text += ", " + string(c.Place)
	}
	return text
}

func series(c curve.Curve, l line) chart.Series {
	s := chart.Series{Style: l.Style}
	for _, p := range c.Points {
		title := fmt.Sprintf("%s, %s: %s GB/s", l.Label, curve.HumanSize(p.Bytes), curve.Digits(p.BusBW))
		s.Points = append(s.Points, chart.Point{Bytes: p.Bytes, Low: p.BusBW, Value: p.BusBW, High: p.BusBW, Filled: true, Title: title})
	}
	return s
}

// table lists the figures of all curves side by side, by size.
func table(curves []curve.Curve) []figures {
	var rows []figures
	for i, c := range curves {
		for _, p := range c.Points {
			at, known := slices.BinarySearchFunc(rows, p.Bytes, func(f figures, bytes int64) int { return cmp.Compare(f.Bytes, bytes) })
			if !known {
				rows = slices.Insert(rows, at, figures{p.Bytes, slices.Repeat([]string{"–"}, len(curves))})
			}
			rows[at].BusBW[i] = curve.Digits(p.BusBW)
		}
	}
	return rows
}
