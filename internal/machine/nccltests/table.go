package nccltests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Limits of the parser. The longest real output has some hundred lines.
const (
	maxOutput = 16 << 20 // bytes
	maxLine   = 64 << 10
)

// Parse parses the output of a program. Truncated output, an invalid number and a missing
// size are errors. Parse never returns a partial report.
func Parse(r io.Reader) (Report, error) {
	report, err := parseTable(r)
	if err != nil {
		return Report{}, fmt.Errorf("reading output: %w", err)
	}
	return report, nil
}

// bounded returns an error beyond a limit of bytes.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("it exceeds %d bytes", maxOutput)
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func parseTable(r io.Reader) (Report, error) {
	t := table{}
	lines := bufio.NewScanner(&bounded{r: r, left: maxOutput})
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := t.line(lines.Text()); err != nil {
			return Report{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return Report{}, fmt.Errorf("line %d exceeds %d bytes", number+1, maxLine)
	} else if err != nil {
		return Report{}, err
	}
	return t.report, t.end()
}

// table is the state of parsing an output.
type table struct {
	report   Report
	sizes    *sizes // requested sizes
	header   bool   // the header was read
	starting bool   // the program announced its start, so it must also announce its end
	bounds   bool   // first line of the footer was read
	average  bool   // second line of the footer was read
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
		t.sizes, err = newSizes(m[1], m[2], m[3])
		return err
	}
	if m := reduced.FindStringSubmatch(text); m != nil && t.sizes != nil {
		return t.sizes.reduce(m[1])
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
	if t.sizes == nil {
		return errors.New("a row comes before the line with the requested sizes")
	}
	row, err := newRow(text)
	if err != nil {
		return err
	}
	t.report.Rows = append(t.report.Rows, row)
	return t.sizes.next(row.Bytes, t.report)
}

// end requires all parts of a complete output.
func (t *table) end() error {
	switch {
	case !t.header:
		return errors.New("it holds no table")
	case len(t.report.Rows) == 0:
		return errors.New("the table has no rows")
	case !t.sizes.complete():
		return fmt.Errorf("the output is truncated: the last row has %d bytes, and the row of %d bytes is missing", t.report.Rows[len(t.report.Rows)-1].Bytes, t.sizes.want)
	case !t.bounds || !t.average || t.starting && !t.ended:
		return errors.New("the output is truncated: the footer is missing")
	}
	return nil
}
