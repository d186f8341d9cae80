package nccltests

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parse parses the output of a program. Truncated output and an invalid number are
// errors. Parse never returns a partial report.
func Parse(output string) (Report, error) {
	t := table{}
	number := 0
	for line := range strings.Lines(output) {
		number++
		if err := t.line(line); err != nil {
			return Report{}, fmt.Errorf("reading output: line %d: %w", number, err)
		}
	}
	if err := t.end(); err != nil {
		return Report{}, fmt.Errorf("reading output: %w", err)
	}
	return t.report, nil
}

// table is the state of parsing an output.
type table struct {
	report   Report
	header   bool // the header was read
	starting bool // the program announced its start, so it must also announce its end
	bounds   bool // first line of the footer was read
	average  bool // second line of the footer was read
	ended    bool
}

func (t *table) line(line string) error {
	text := strings.TrimSpace(line)
	comment, isComment := strings.CutPrefix(text, "#")
	switch {
	case isComment:
		return t.comment(strings.TrimSpace(comment))
	case failure.MatchString(text):
		return errors.New(text)
	case t.header && number.MatchString(text):
		return t.row(text)
	}
	return nil // a line of the library, the driver or MPI
}

var (
	// failure matches the output of CUDACHECK, NCCLCHECK and TESTCHECK (src/common.h),
	// and of the program's own time limit.
	failure = regexp.MustCompile(`: Test (CUDA |NCCL |HIP )?failure |: Test timeout \(`)
	number  = regexp.MustCompile(`^\d+(\s|$)`)

	starting = regexp.MustCompile(`^Collective test starting: (\S+)$`)
	versions = regexp.MustCompile(`^[nr]ccl-tests version \S+ [nr]ccl-headers=\d+ [nr]ccl-library=(\d+)`)
	device   = regexp.MustCompile(`^Rank\s+\d+(?:\s+Group\s+\d+)?\s+Pid\s+\d+ on\s+(\S+)\s+device\s+\d+\s+\[([^\]]*)\]\s*(.*)$`)
	bounds   = regexp.MustCompile(`^Out of bounds values\s*: (\d+) (OK|FAILED)$`)
	average  = regexp.MustCompile(`^Avg bus bandwidth\s*: (\S+)(?: (?:OK|FAILED))?$`)
)

// comment parses a line that starts with #. It ignores unknown comments.
func (t *table) comment(text string) error {
	if !t.header {
		return t.preamble(text)
	}
	switch {
	case bounds.MatchString(text):
		return t.outOfBounds(bounds.FindStringSubmatch(text))
	case average.MatchString(text):
		_, err := positive(average.FindStringSubmatch(text)[1])
		t.average = true
		return err
	case strings.HasPrefix(text, "Collective test concluded:"):
		t.ended = true
	}
	return nil
}

// preamble parses a comment above the table.
func (t *table) preamble(text string) (err error) {
	if m := starting.FindStringSubmatch(text); m != nil {
		t.report.Program, t.starting = m[1], true
	}
	if m := versions.FindStringSubmatch(text); m != nil {
		t.report.Library, err = strconv.Atoi(m[1])
		return err
	}
	if m := device.FindStringSubmatch(text); m != nil {
		t.report.Devices = append(t.report.Devices, Device{Host: m[1], BusID: busID(m[2]), Name: m[3]})
	}
	if fields := strings.Fields(text); len(fields) > 2 && fields[0] == "size" && fields[1] == "count" {
		t.header = true
		if !slices.Equal(fields, header) {
			err = fmt.Errorf("the table has other columns than releases since 2.13: %.200q", strings.Join(fields, " "))
		}
	}
	return err
}

// busID converts the address of a GPU to the drivers' notation. Before 2.14 the
// programs print a single number instead of an address.
func busID(text string) string {
	switch {
	case strings.HasPrefix(text, "0x"):
		return ""
	case strings.Contains(text, "."):
		return text
	}
	return text + ".0" // GPUs are function 0
}

func (t *table) outOfBounds(m []string) error {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return err
	}
	if (n == 0) != (m[2] == "OK") {
		return fmt.Errorf("%q contradicts itself", m[0])
	}
	t.report.OutOfBounds, t.bounds = n, true
	return nil
}

func (t *table) row(text string) error {
	if t.bounds {
		return errors.New("a row comes after the footer")
	}
	row, err := newRow(text)
	if err != nil {
		return err
	}
	t.report.Rows = append(t.report.Rows, row)
	return nil
}

// end requires all parts of a complete output.
func (t *table) end() error {
	switch {
	case !t.header:
		return errors.New("it holds no table")
	case len(t.report.Rows) == 0:
		return errors.New("the table has no rows")
	case !t.bounds || !t.average || t.starting && !t.ended:
		return errors.New("the output is truncated: the footer is missing")
	}
	return nil
}

// leading are the columns before the halves of a row, and half those of each half: out of
// place, then in place. Options that add columns or leave out a half are not used here.
var (
	leading = []string{"size", "count", "type", "redop", "root"}
	half    = []string{"time", "algbw", "busbw", "#wrong"}
	header  = slices.Concat(leading, half, half)
)

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

// notInPlace lists the programs that do not check in-place results, because the buffers
// of a rank overlap (reportErrors in their source).
var notInPlace = []string{"alltoall_perf", "alltoallv_perf", "sendrecv_perf"}

// Unchecked reports whether the values of a row, or of a half its program can check,
// were not checked.
func (r Report) Unchecked(row Row) bool {
	return !row.OutOfPlace.Checked || !row.InPlace.Checked && !slices.Contains(notInPlace, r.Program)
}
