package benchpage

import (
	"fmt"
	"math"
	"strings"

	"builder/internal/bench"
)

// A chart is a picture as the template draws it: places in units of the picture,
// words for those who do not see it.
type chart struct {
	Class          string
	Width, Height  float64
	Left, Right    float64 // of the plot
	Top, Bottom    float64
	XTicks, YTicks []tick
	YTitle         string
	About          string
	Rule           float64 // where 1.0 is, 0 where there is no such line
	Curves         []curve
}

// A curve is one library.
type curve struct {
	Style int
	Line  string // paths
	Band  string
	Marks []mark
}

// A mark is one size of one library.
type mark struct {
	Path    string
	Filled  bool
	Whisker string
	Title   string
}

// A point is a figure with its spread.
type point struct {
	bytes  int64
	value  bench.Spread
	filled bool
	title  string
}

// A series is what a chart shows of one library.
type series struct {
	style  int
	points []point
}

// A shape is where the plot lies in its picture, and how much room for words there
// is.
type shape struct {
	class                    string
	width, height            float64
	left, right, top, bottom float64 // margins
	xLabels, yLabels         int
	mark                     float64
}

// Each picture is made twice, for a screen and for a phone: scaled down its words
// could not be read.
var (
	wide   = shape{"wide", 960, 340, 64, 20, 28, 34, 11, 6, 3.2}
	narrow = shape{"narrow", 356, 260, 46, 12, 26, 30, 5, 5, 2.6}
)

// A plot is what shall be shown, before it has a shape.
type plot struct {
	series  []series
	yTitle  string
	about   string
	low     bool    // a picture of less height
	whisker bool    // the spread as whiskers instead of a band, and no line
	around  float64 // a value that is always in sight: 0, or the 1 of a ratio
	least   float64 // the least that is in sight beside it
}

// charts are the pictures of a plot; none where there is nothing to show.
func (p plot) charts() []chart {
	first, last := p.sizes()
	if last == 0 {
		return nil
	}
	return []chart{p.draw(wide, first, last), p.draw(narrow, first, last)}
}

func (p plot) sizes() (first, last int64) {
	for _, s := range p.series {
		for _, pt := range s.points {
			if first == 0 || pt.bytes < first {
				first = pt.bytes
			}
			last = max(last, pt.bytes)
		}
	}
	return first, last
}

func (p plot) values() (low, high float64) {
	low, high = p.around, p.around+p.least
	if p.around != 0 {
		low -= p.least
	}
	for _, s := range p.series {
		for _, pt := range s.points {
			low, high = math.Min(low, pt.value.Min), math.Max(high, pt.value.Max)
		}
	}
	return low, high
}

func (p plot) draw(s shape, first, last int64) chart {
	if p.low {
		s.height *= 0.7
		s.yLabels -= 2
	}
	c := chart{
		Class: s.class, Width: s.width, Height: s.height, YTitle: p.yTitle, About: p.about,
		Left: s.left, Right: s.width - s.right, Top: s.top, Bottom: s.height - s.bottom,
	}
	inset := 8.0 // for the marks at the ends
	x, xTicks := logarithmic(first, last, s.xLabels, c.Left+inset, c.Right-inset)
	low, high := p.values()
	y, yTicks := linear(low, high, s.yLabels, c.Bottom, c.Top)
	c.XTicks, c.YTicks = xTicks, yTicks
	if p.around != 0 {
		c.Rule = y.at(p.around)
	}
	for i, one := range p.series {
		shift := 0.0
		if p.whisker { // side by side, so that none hides another
			shift = (float64(i) - float64(len(p.series)-1)/2) * 2.4 * s.mark
		}
		c.Curves = append(c.Curves, p.curve(one, x, y, shift, s.mark))
	}
	return c
}

func (p plot) curve(s series, x, y axis, shift, size float64) curve {
	c := curve{Style: s.style}
	var line, upper, lower []string
	for _, pt := range s.points {
		px := x.at(math.Log2(float64(pt.bytes))) + shift
		py, top, bottom := y.at(pt.value.Median), y.at(pt.value.Max), y.at(pt.value.Min)
		m := mark{Path: markPath(s.style, px, py, size), Filled: pt.filled, Title: pt.title}
		if p.whisker {
			m.Whisker = whisker(px, top, bottom, size)
		}
		c.Marks = append(c.Marks, m)
		line = append(line, xy(px, py))
		upper, lower = append(upper, xy(px, top)), append([]string{xy(px, bottom)}, lower...)
	}
	if !p.whisker {
		c.Line = "M" + strings.Join(line, "L")
		c.Band = "M" + strings.Join(append(upper, lower...), "L") + "Z"
	}
	return c
}

func xy(x, y float64) string { return fmt.Sprintf("%.1f %.1f", x, y) }

func whisker(x, top, bottom, size float64) string {
	return fmt.Sprintf("M%.1f %.1fV%.1fM%.1f %.1fh%.1fM%.1f %.1fh%.1f", x, top, bottom, x-size, top, 2*size, x-size, bottom, 2*size)
}

// markPath draws the mark of a library, each of another shape: a circle, a square,
// a triangle, a diamond, a triangle on its head, a bar.
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
