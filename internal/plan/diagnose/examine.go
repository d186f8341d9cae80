package diagnose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"builder/internal/base/diag"
)

// A Report is the result for one log.
type Report struct {
	File     string    `json:"file"`
	Lines    int       `json:"lines"`
	Findings []Finding `json:"findings"`
}

// An Examiner searches for known failures. It holds no state of a log and is safe for
// concurrent use.
type Examiner struct{ logs *index }

// NewExaminer returns an Examiner for the diagnoses returned by [Load].
func NewExaminer(all []Diagnosis) *Examiner { return &Examiner{newIndex(all)} }

// File examines the log at a path.
func (e *Examiner) File(ctx context.Context, name string) (Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return Report{File: name}, diag.Errorf(diag.Usage, "%w", err)
	}
	defer f.Close()
	return e.Log(ctx, name, f)
}

// Log examines a log from any reader, with memory that does not grow with its length.
// name identifies it in the report. For a log that cannot be read to its end, Log returns
// an error together with a report of the lines before.
func (e *Examiner) Log(ctx context.Context, name string, r io.Reader) (Report, error) {
	from := &stoppable{ctx: ctx, r: r}
	head := bufio.NewReaderSize(from, maxLine)
	if err := otherKind(head); err != nil {
		return Report{File: name}, diag.At(diag.Pos{File: name}, "%w", err)
	}
	s := e.logs.scan()
	lines, err := s.lines(head)
	if err != nil {
		err = diag.At(diag.Pos{File: name, Line: lines + 1}, "reading: %w", err)
	}
	found := s.findings()
	if err == nil && len(found) == 0 && from.binary() {
		err = diag.At(diag.Pos{File: name}, "no known failure, and no text: %d of %d bytes are NUL", from.nuls, from.size).
			WithHint("name the log of a build or job; builder gate FILE describes a library or a wheel")
	}
	return Report{name, lines, found}, err
}

// otherKinds lists the first bytes of files that are no logs, and what to do with them.
var otherKinds = []struct{ magic, problem string }{
	{"\x7fELF", "a library or a program, not a log: builder gate FILE describes it"},
	{"PK\x03\x04", "a wheel or another ZIP, not a log: builder gate FILE describes a wheel"},
	{"\x1f\x8b", "compressed with gzip: unpack it (gzip -dc FILE | builder diagnose -)"},
	{"\xfd7zXZ", "compressed with xz: unpack it (xz -dc FILE | builder diagnose -)"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it (zstd -dc FILE | builder diagnose -)"},
}

func otherKind(r *bufio.Reader) error {
	head, err := r.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading: %w", err)
	}
	for _, k := range otherKinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return errors.New(k.problem)
		}
	}
	return nil
}

// stoppable is a reader that fails when its context ends. It counts the NULs of what it
// read.
type stoppable struct {
	ctx        context.Context
	r          io.Reader
	size, nuls int
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.size, s.nuls = s.size+n, s.nuls+bytes.Count(p[:n], []byte{0})
	return n, err
}

// binary reports whether the bytes are no text. A log can hold single NULs, which programs
// print; in other data at least one byte in a thousand is one.
func (s *stoppable) binary() bool { return s.nuls*1000 > s.size }

// Cause returns the first finding of a log if it is an error. It returns false if there
// is none, or if the log cannot be read.
func (e *Examiner) Cause(ctx context.Context, name string) (Diagnosis, bool) {
	report, err := e.File(ctx, name)
	if err != nil || len(report.Findings) == 0 || report.Findings[0].Severity != Error {
		return Diagnosis{}, false
	}
	return report.Findings[0].Diagnosis, true
}
