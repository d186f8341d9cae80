package nccltests

import (
	"errors"
	"fmt"
	"regexp"
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
