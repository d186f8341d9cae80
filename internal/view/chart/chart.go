// Package chart draws figures over the size of messages as SVG, for the pages of a
// comparison and of a run. A page uses the pictures of a [Plot], the definitions of
// [Template] and the rules of [Style]. Shapes of marks and dashes of lines repeat the
// meaning of colours. The page itself provides a table of the same figures.
package chart

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
)

// Template defines "chart", which draws a [Chart], and "key", which draws a legend mark
// for a value with the fields Style and Key.
//
//go:embed chart.tmpl
var Template string

// Style holds the CSS rules for both. They use the colours --text, --quiet, --edge and
// --ground of the page.
//
//go:embed chart.css
var Style string

// Styles is the number of styles. Each has its own shape of mark.
const Styles = 6

// A Chart is the data of a picture for the template: positions in units of the picture,
// and a description in words for screen readers.
type Chart struct {
	Class          string
	Width, Height  float64
	Left, Right    float64 // of the plot
	Top, Bottom    float64
	XTicks, YTicks []Tick
	YTitle         string
	About          string
	Rule           float64 // position of the value 1.0, 0 for no line
	Curves         []Curve
}

// A Curve is one library.
type Curve struct {
	Style int
	Line  string // paths
	Band  string
	Marks []Mark
}

// A Mark is one size of one library.
type Mark struct {
	Path    string
	Filled  bool
	Whisker string
	Title   string
}

// A Point is a figure with its lowest and highest measured values.
type Point struct {
	Bytes            int64
	Low, Value, High float64
	Filled           bool
	Title            string // tooltip of the mark
}

// A Series holds the points of one library.
type Series struct {
	Style  int // 0 to Styles-1; 0 is grey, for the reference
	Points []Point
}

// A shape is the layout of a picture: the position of the plot and the room for labels.
type shape struct {
	class                    string
	width, height            float64
	left, right, top, bottom float64 // margins
	xLabels, yLabels         int
	mark                     float64
}

// Each picture is drawn twice, for a screen and for a phone. Scaled down, its text
// would be unreadable.
var (
	wide   = shape{"wide", 960, 340, 64, 20, 28, 34, 11, 6, 3.2}
	narrow = shape{"narrow", 356, 260, 46, 12, 26, 30, 5, 5, 2.6}
)

// A Plot is the content of a picture, independent of its shape.
type Plot struct {
	Series  []Series
	YTitle  string
	About   string  // description in words for screen readers
	Low     bool    // a lower picture
	Whisker bool    // shows the spread as whiskers instead of a band, without a line
	Around  float64 // a value that is always visible: 0, or the 1 of a ratio
	Least   float64 // the smallest visible distance from it
}

// Charts returns the pictures of a plot, or none if it has no points.
func (p Plot) Charts() []Chart {
	first, last := p.sizes()
	if last == 0 {
		return nil
	}
	return []Chart{p.draw(wide, first, last), p.draw(narrow, first, last)}
}

func (p Plot) sizes() (first, last int64) {
	for _, s := range p.Series {
		for _, pt := range s.Points {
			if first == 0 || pt.Bytes < first {
				first = pt.Bytes
			}
			last = max(last, pt.Bytes)
		}
	}
	return first, last
}

func (p Plot) values() (low, high float64) {
	low, high = p.Around, p.Around+p.Least
	if p.Around != 0 {
		low -= p.Least
	}
	for _, s := range p.Series {
		for _, pt := range s.Points {
			low, high = math.Min(low, pt.Low), math.Max(high, pt.High)
		}
	}
	return low, high
}

func (p Plot) draw(s shape, first, last int64) Chart {
	if p.Low {
		s.height *= 0.7
		s.yLabels -= 2
	}
	c := Chart{
		Class: s.class, Width: s.width, Height: s.height, YTitle: p.YTitle, About: p.About,
		Left: s.left, Right: s.width - s.right, Top: s.top, Bottom: s.height - s.bottom,
	}
	inset := 8.0 // room for the marks at the ends
	x, xTicks := logarithmic(first, last, s.xLabels, c.Left+inset, c.Right-inset)
	low, high := p.values()
	y, yTicks := linear(low, high, s.yLabels, c.Bottom, c.Top)
	c.XTicks, c.YTicks = xTicks, yTicks
	if p.Around != 0 {
		c.Rule = y.at(p.Around)
	}
	for i, one := range p.Series {
		shift := 0.0
		if p.Whisker { // side by side, so that none hides another
			shift = (float64(i) - float64(len(p.Series)-1)/2) * 2.4 * s.mark
		}
		c.Curves = append(c.Curves, p.curve(one, x, y, shift, s.mark))
	}
	return c
}

func (p Plot) curve(s Series, x, y axis, shift, size float64) Curve {
	c := Curve{Style: s.Style}
	var line, upper, lower []string
	spread := false
	for _, pt := range s.Points {
		px := x.at(math.Log2(float64(pt.Bytes))) + shift
		py, top, bottom := y.at(pt.Value), y.at(pt.High), y.at(pt.Low)
		m := Mark{Path: markPath(s.Style, px, py, size), Filled: pt.Filled, Title: pt.Title}
		if p.Whisker {
			m.Whisker = whisker(px, top, bottom, size)
		}
		c.Marks = append(c.Marks, m)
		line = append(line, xy(px, py))
		spread = spread || pt.Low != pt.High
		upper, lower = append(upper, xy(px, top)), append([]string{xy(px, bottom)}, lower...)
	}
	if !p.Whisker {
		c.Line = "M" + strings.Join(line, "L")
	}
	if !p.Whisker && spread {
		c.Band = "M" + strings.Join(append(upper, lower...), "L") + "Z"
	}
	return c
}

func xy(x, y float64) string { return fmt.Sprintf("%.1f %.1f", x, y) }

func whisker(x, top, bottom, size float64) string {
	return fmt.Sprintf("M%.1f %.1fV%.1fM%.1f %.1fh%.1fM%.1f %.1fh%.1f", x, top, bottom, x-size, top, 2*size, x-size, bottom, 2*size)
}

// Key returns the path of a style's mark in a legend.
func Key(style int) string { return markPath(style, 14, 7, 3.6) }

// markPath returns the path of a style's mark: a circle, a square, a triangle, a
// diamond, an inverted triangle or a bar.
func markPath(style int, x, y, r float64) string {
	polygon := func(points ...float64) string {
		var corners []string
		for i := 0; i < len(points); i += 2 {
			corners = append(corners, xy(x+points[i]*r, y+points[i+1]*r))
		}
		return "M" + strings.Join(corners, "L") + "Z"
	}
	switch style {
	case 0:
		return fmt.Sprintf("M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0", x-r, y, r, r, 2*r, r, r, -2*r)
	case 1:
		return polygon(-0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9)
	case 2:
		return polygon(0, -1.2, 1.1, 0.8, -1.1, 0.8)
	case 3:
		return polygon(0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0)
	case 4:
		return polygon(0, 1.2, 1.1, -0.8, -1.1, -0.8)
	}
	return polygon(-0.5, -1.3, 0.5, -1.3, 0.5, 1.3, -0.5, 1.3)
}
