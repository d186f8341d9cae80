package nccltests

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Parse parses the output of a program. Truncated output, an invalid number and a missing
// size are errors. Parse never returns a partial report.
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

// sizes are the sizes of a run, from first to last by a factor (TimeTest in
// src/common.cu).
type sizes struct{ first, last, factor int64 }

// at returns the size with an index, or false beyond the last one.
func (s sizes) at(i int) (size int64, ok bool) {
	size = s.first
	for range i {
		if size > s.last/s.factor {
			return 0, false
		}
		size *= s.factor
	}
	return size, true
}

// table is the state of parsing an output.
type table struct {
	report   Report
	sizes    sizes // requested sizes; the factor is 0 before they are known
	header   bool  // the header was read
	starting bool  // the program announced its start, so it must also announce its end
	bounds   bool  // first line of the footer was read
	average  bool  // second line of the footer was read
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

	asked    = regexp.MustCompile(`^nThread \d+ nGpus \d+ minBytes (\d+) maxBytes (\d+) step: (\d+)\(factor\) `)
	reduced  = regexp.MustCompile(`^Reducing maxBytes to (\d+) due to memory limitation`)
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
	if m := asked.FindStringSubmatch(text); m != nil {
		_, err := fmt.Sscan(strings.Join(m[1:], " "), &t.sizes.first, &t.sizes.last, &t.sizes.factor)
		if err == nil && (t.sizes.first < 1 || t.sizes.first > t.sizes.last || t.sizes.factor < 2) {
			err = fmt.Errorf("invalid sizes: %s", text)
		}
		return err
	}
	if m := reduced.FindStringSubmatch(text); m != nil { // too little GPU memory for the last size
		t.sizes.last, err = strconv.ParseInt(m[1], 10, 64)
		t.sizes.first = min(t.sizes.first, t.sizes.last)
		return err
	}
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
		t.header, err = true, checkHeader(fields)
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
	if t.sizes.factor == 0 {
		return errors.New("a row comes before the line with the requested sizes")
	}
	row, err := newRow(text)
	if err != nil {
		return err
	}
	want, ok := t.sizes.at(len(t.report.Rows))
	if !ok {
		return fmt.Errorf("a row has %d bytes, and the last size came before it", row.Bytes)
	}
	t.report.Rows = append(t.report.Rows, row)
	// Programs print the requested size, rounded down to units of 16 bytes shared evenly by
	// the ranks. The exception is alltoallv, whose ranks send different amounts.
	slack := int64(max(len(t.report.Devices), 1)) * 32
	if short := want - row.Bytes; (short < 0 || short >= slack) && t.report.Program != "alltoallv_perf" {
		return fmt.Errorf("a row has %d bytes, expected %d", row.Bytes, want)
	}
	return nil
}

// end requires all parts of a complete output.
func (t *table) end() error {
	next, more := t.sizes.at(len(t.report.Rows))
	switch {
	case !t.header:
		return errors.New("it holds no table")
	case len(t.report.Rows) == 0:
		return errors.New("the table has no rows")
	case more:
		return fmt.Errorf("the output is truncated: the row of %d bytes is missing", next)
	case !t.bounds || !t.average || t.starting && !t.ended:
		return errors.New("the output is truncated: the footer is missing")
	}
	return nil
}
