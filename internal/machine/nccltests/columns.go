package nccltests

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// leading are the columns before the halves of a row, and half those of each half: out of
// place, then in place. Options that add columns or leave out a half are not used here.
var (
	leading = []string{"size", "count", "type", "redop", "root"}
	half    = []string{"time", "algbw", "busbw", "#wrong"}
	header  = slices.Concat(leading, half, half)
)

// checkHeader returns an error for a table with other columns.
func checkHeader(names []string) error {
	if !slices.Equal(names, header) {
		return fmt.Errorf("the table has other columns than releases since 2.13: %.200q", strings.Join(names, " "))
	}
	return nil
}

// newRow parses a line of the table.
func newRow(text string) (Row, error) {
	fields := strings.Fields(text)
	if len(fields) != len(header) {
		return Row{}, fmt.Errorf("a row has %d of %d columns: %.200q", len(fields), len(header), text)
	}
	bytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Row{}, err
	}
	out, err := newTiming(fields[len(leading) : len(leading)+len(half)])
	if err != nil {
		return Row{}, err
	}
	in, err := newTiming(fields[len(leading)+len(half):])
	return Row{Bytes: bytes, Type: fields[2], OutOfPlace: out, InPlace: in}, err
}

// newTiming parses the fields of a half.
func newTiming(fields []string) (Timing, error) {
	var t Timing
	for i, text := range fields[:3] { // the last one is the bus bandwidth
		v, err := positive(text)
		if err == nil && i == 0 && v == 0 {
			err = errors.New("the time is zero")
		}
		if err != nil {
			return Timing{}, fmt.Errorf("column %s: %w", half[i], err)
		}
		t.BusBW = v
	}
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
