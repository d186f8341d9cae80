package nccltests

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// columns is the layout of a table, from its header.
type columns struct {
	width   int   // fields of a row
	halves  []int // the first field of each half
	outside bool  // the first half is out-of-place
}

// The columns of a table. Those of a half appear once or twice.
var (
	leading = []string{"size", "count", "type", "redop", "root"}
	half    = []string{"time", "algbw", "busbw", "#wrong"}
	// Ignored columns are from the options -I (2.18) and -S (2.17.6), and from
	// rccl-tests' -A.
	ignored = []string{"i_min", "i_max", "i_p99", "i_cv%", "timestamp", "algo", "proto", "nchannels"}
)

func newColumns(names []string, outside bool) (*columns, error) {
	incomplete := fmt.Errorf("the header of the table is incomplete, or of a release before 2.13: %.200q", strings.Join(names, " "))
	if !begins(names, leading) {
		return nil, incomplete
	}
	c := &columns{width: len(leading), outside: outside}
	for rest := names[len(leading):]; len(rest) > 0; {
		taken := 1
		switch name := rest[0]; {
		case begins(rest, half):
			c.halves = append(c.halves, c.width)
			taken = len(half)
		case slices.Contains(half, name):
			return nil, incomplete
		case !slices.Contains(ignored, name):
			return nil, fmt.Errorf("the table has an unknown column %.40q", name)
		case name == "timestamp":
			c.width++ // it has two fields: date and time
		}
		c.width, rest = c.width+taken, rest[taken:]
	}
	if len(c.halves) < 1 || len(c.halves) > 2 {
		return nil, incomplete
	}
	return c, nil
}

func begins(names, with []string) bool {
	return len(names) >= len(with) && slices.Equal(names[:len(with)], with)
}

// row parses a line of the table.
func (c *columns) row(text string) (Row, error) {
	fields := strings.Fields(text)
	if len(fields) != c.width {
		return Row{}, fmt.Errorf("a row has %d of %d columns: %.200q", len(fields), c.width, text)
	}
	bytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Row{}, err
	}
	var timings [2]Timing
	for i, at := range c.halves {
		if timings[i], err = newTiming(fields[at : at+len(half)]); err != nil {
			return Row{}, err
		}
	}
	row := Row{Bytes: bytes, Type: fields[2], OutOfPlace: timings[0], InPlace: timings[1]}
	if len(c.halves) == 1 && !c.outside {
		row.OutOfPlace, row.InPlace = timings[1], timings[0]
	}
	return row, nil
}

// newTiming parses the fields of a half.
func newTiming(fields []string) (Timing, error) {
	t := Timing{Measured: true}
	var numbers [3]float64
	for i, text := range fields[:3] {
		v, err := positive(text)
		if err != nil {
			return Timing{}, fmt.Errorf("column %s: %w", half[i], err)
		}
		numbers[i] = v
	}
	if numbers[0] == 0 {
		return Timing{}, errors.New("the time is zero")
	}
	t.BusBW = numbers[2]
	if fields[3] == "N/A" {
		return t, nil
	}
	wrong, err := positive(fields[3]) // printed as %g
	if err == nil && (wrong != math.Trunc(wrong) || wrong > 1<<53) {
		err = fmt.Errorf("%.40q is not a number of elements", fields[3])
	}
	t.Wrong, t.Checked = int64(wrong), true
	return t, err
}

// positive parses a measured number. It refuses negative numbers, infinity and NaN.
func positive(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsNaN(v) || math.IsInf(v, 0) || v < 0) {
		err = fmt.Errorf("%.40q is not a measurement", text)
	}
	return v, err
}
