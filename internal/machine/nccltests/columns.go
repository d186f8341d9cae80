package nccltests

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// columns is the layout of a table, from its header. Before 2.13 each program has its
// own layout. Later releases add columns.
type columns struct {
	names   []string
	outside bool // the first half is out-of-place
}

// All known columns. Those of a half appear once for each half.
var (
	leading = []string{"size", "count", "type", "redop", "root"}
	half    = []string{"time", "algbw", "busbw"}
	checks  = []string{"#wrong", "error"} // since 2.13; before 2.13
	// Ignored columns are from the options -I (2.18) and -S (2.17.6), and from
	// rccl-tests' -A.
	ignored = []string{"i_min", "i_max", "i_p99", "i_cv%", "timestamp", "algo", "proto", "nchannels"}
)

func newColumns(names []string, outside bool) (*columns, error) {
	known := slices.Concat(leading, half, checks, ignored)
	count := map[string]int{}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("the table has an unknown column %.40q", name)
		}
		count[name]++
	}
	c := &columns{outside: outside}
	c.names = append(c.names, names...)
	halves := count["time"]
	if count["size"] != 1 || count["count"] != 1 || count["type"] != 1 || halves < 1 || halves > 2 ||
		count["algbw"] != halves || count["busbw"] != halves || count["#wrong"]+count["error"] != halves {
		return nil, fmt.Errorf("the header of the table is incomplete: %.200q", strings.Join(names, " "))
	}
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
	row, timing := Row{Op: "none", Root: -1}, -1
	timings := [2]Timing{}
	for i, name := range c.names {
		if name == "time" {
			timing++
			timings[timing].Measured = true
		}
		var err error
		if slices.Contains(leading, name) {
			err = row.set(name, fields[i])
		} else if !slices.Contains(ignored, name) {
			if timing < 0 {
				return Row{}, fmt.Errorf("column %s comes before the first time", name)
			}
			err = timings[timing].set(name, fields[i])
		}
		if err != nil {
			return Row{}, fmt.Errorf("column %s: %w", name, err)
		}
	}
	if timing == 0 && !c.outside {
		row.InPlace = timings[0]
	} else {
		row.OutOfPlace, row.InPlace = timings[0], timings[1]
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
	case "error":
		// The value is the largest error of an element. Only the footer says whether it
		// is too large, because that depends on the type and the number of ranks.
		if t.Checked = text != "N/A"; t.Checked {
			_, err = positive(text)
		}
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
