package nccltests

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// columns is the layout of a table, from its header: the leading columns, and one or two
// halves that begin with a time. Releases add columns to both.
type columns struct {
	names   []string
	outside bool // the first half is out-of-place
}

// All known columns. Those of a half appear once for each half.
var (
	leading = []string{"size", "count", "type", "redop", "root"}
	half    = []string{"time", "algbw", "busbw", "#wrong"}
	// Ignored columns are from the options -I (2.18) and -S (2.17.6), and from
	// rccl-tests' -A.
	ignored = []string{"i_min", "i_max", "i_p99", "i_cv%", "timestamp", "algo", "proto", "nchannels"}
)

func newColumns(names []string, outside bool) (*columns, error) {
	known := slices.Concat(leading, half, ignored)
	count := map[string]int{}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("the table has an unknown column %.40q; releases before 2.13 are not supported", name)
		}
		count[name]++
	}
	halves := count["time"]
	whole := slices.Equal(names[:min(len(names), len(leading))], leading) && (halves == 1 || halves == 2)
	for _, name := range half {
		whole = whole && count[name] == halves
	}
	if !whole {
		return nil, fmt.Errorf("the header of the table is incomplete: %.200q", strings.Join(names, " "))
	}
	c := &columns{slices.Clone(names), outside}
	if i := slices.Index(c.names, "timestamp"); i >= 0 {
		c.names = slices.Insert(c.names, i, "timestamp") // it has two fields: date and time
	}
	return c, nil
}

// row parses a line of the table.
func (c *columns) row(text string) (Row, error) {
	fields := strings.Fields(text)
	if len(fields) != len(c.names) {
		return Row{}, fmt.Errorf("a row has %d of %d columns: %.200q", len(fields), len(c.names), text)
	}
	var row Row
	var timings [2]Timing
	timing := -1
	for i, name := range c.names {
		if name == "time" {
			timing++
			timings[timing].Measured = true
		}
		var err error
		switch {
		case slices.Contains(leading, name):
			err = row.set(name, fields[i])
		case timing >= 0 && !slices.Contains(ignored, name):
			err = timings[timing].set(name, fields[i])
		case slices.Contains(half, name):
			err = errors.New("it comes before the first time")
		}
		if err != nil {
			return Row{}, fmt.Errorf("column %s: %w", name, err)
		}
	}
	row.OutOfPlace, row.InPlace = timings[0], timings[1]
	if timing == 0 && !c.outside {
		row.OutOfPlace, row.InPlace = timings[1], timings[0]
	}
	return row, nil
}

func (r *Row) set(name, text string) (err error) {
	switch name {
	case "size":
		r.Bytes, err = natural(text)
	case "count":
		r.Count, err = natural(text)
	case "type":
		r.Type = text
	case "redop":
		r.Op = text
	case "root":
		r.Root, err = strconv.Atoi(text)
	}
	return err
}

func (t *Timing) set(name, text string) (err error) {
	switch name {
	case "time":
		if t.Microseconds, err = positive(text); err == nil && t.Microseconds == 0 {
			err = errors.New("the time is zero")
		}
	case "algbw":
		t.AlgBW, err = positive(text)
	case "busbw":
		t.BusBW, err = positive(text)
	case "#wrong":
		t.Wrong, t.Checked, err = wrong(text)
	}
	return err
}

// wrong parses a number of elements, printed as %g or N/A.
func wrong(text string) (n int64, checked bool, err error) {
	if text == "N/A" {
		return 0, false, nil
	}
	v, err := positive(text)
	if err == nil && (v != math.Trunc(v) || v > 1<<53) {
		err = fmt.Errorf("%.40q is not a number of elements", text)
	}
	return int64(v), err == nil, err
}

func natural(text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err == nil && v < 0 {
		err = fmt.Errorf("%.40q is negative", text)
	}
	return v, err
}

// positive parses a measured number. It refuses negative numbers, infinity and NaN.
func positive(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0) {
		err = fmt.Errorf("%.40q is not a measurement", text)
	}
	return v, err
}
