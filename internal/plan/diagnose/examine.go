package diagnose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// A Report is the result for one file.
type Report struct {
	File     string
	Kind     string // log, library or wheel
	Lines    int    // lines of a log; facts of a library or wheel
	Findings []Finding
}

// An Examiner searches for known failures. It holds no state of a file and is safe for
// concurrent use.
type Examiner struct {
	logs, libraries, wheels *index
}

// NewExaminer returns an Examiner for the diagnoses returned by [Load].
func NewExaminer(all []Diagnosis) *Examiner {
	return &Examiner{newIndex(all, BuildLog, RuntimeLog), newIndex(all, Library), newIndex(all, Wheel)}
}

// File examines the file at a path. Its first bytes, not its name, determine whether it
// is a log, a library or a wheel. For a damaged file, File returns an error together
// with a report of the readable parts.
func (e *Examiner) File(ctx context.Context, name string) (Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return Report{File: name}, diag.Errorf(diag.Usage, "%w", err)
	}
	defer f.Close()
	head := bufio.NewReaderSize(f, maxLine)
	kind, err := kindOf(head)
	if err != nil {
		return Report{File: name}, diag.At(diag.Pos{File: name}, "%w", err)
	}
	if kind == "log" {
		return e.stream(ctx, name, head)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Report{File: name}, diag.At(diag.Pos{File: name}, "a %s cannot be read from a pipe", kind).
			WithHint("give the path of the file")
	}
	if kind == "wheel" {
		return e.wheel(ctx, name)
	}
	return e.library(ctx, name, f)
}

// Log examines a log from any reader. name identifies it in the report.
func (e *Examiner) Log(ctx context.Context, name string, r io.Reader) (Report, error) {
	head := bufio.NewReaderSize(r, maxLine)
	kind, err := kindOf(head)
	if err == nil && kind != "log" {
		err = fmt.Errorf("a %s, not a log: give the path of the file", kind)
	}
	if err != nil {
		return Report{File: name}, diag.At(diag.Pos{File: name}, "%w", err)
	}
	return e.stream(ctx, name, head)
}

// kinds lists files with known first bytes. All others are logs. An entry without a
// kind is an unsupported format.
var kinds = []struct{ magic, kind, problem string }{
	{"\x7fELF", "library", ""},
	{"PK\x03\x04", "wheel", ""},
	{"PK\x05\x06", "wheel", ""}, // an empty archive
	{"\x1f\x8b", "", "compressed with gzip: unpack it (gzip -dc FILE | builder diagnose -)"},
	{"\xfd7zXZ", "", "compressed with xz: unpack it (xz -dc FILE | builder diagnose -)"},
	{"\x28\xb5\x2f\xfd", "", "compressed with zstd: unpack it (zstd -dc FILE | builder diagnose -)"},
	{"!<arch>\n", "", "a static library, which does not record its needs: name the library or program linked from it"},
}

func kindOf(r *bufio.Reader) (string, error) {
	head, err := r.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading: %w", err)
	}
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			if k.problem != "" {
				return "", errors.New(k.problem)
			}
			return k.kind, nil
		}
	}
	return "log", nil
}

// stream examines a log with memory that does not grow with its length.
func (e *Examiner) stream(ctx context.Context, name string, r io.Reader) (Report, error) {
	s := e.logs.scan()
	lines, err := s.lines(stoppable{ctx, r})
	if err != nil {
		err = diag.At(diag.Pos{File: name, Line: lines + 1}, "reading: %w", err)
	}
	return Report{name, "log", lines, s.findings()}, err
}

// stoppable is a reader that fails when its context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

func (e *Examiner) library(ctx context.Context, name string, f *os.File) (Report, error) {
	s := e.libraries.scan()
	err := Facts(ctx, elf.Bounded(ctx, f), func(fact string) { s.line("", 0, []byte(fact)) })
	if err != nil { // incomplete facts allow no conclusion
		return Report{File: name, Kind: "library"}, diag.At(diag.Pos{File: name}, "%w", err)
	}
	return Report{name, "library", s.serial, s.findings()}, nil
}

// wheel examines each library of a wheel, and then the wheel with its own facts and
// those of all libraries.
func (e *Examiner) wheel(ctx context.Context, name string) (Report, error) {
	w, err := wheel.Open(name)
	if err != nil {
		return Report{File: name, Kind: "wheel"}, diag.Errorf(diag.Usage, "%w", err)
	}
	defer w.Close()
	whole, budget := e.wheels.scan(), elf.NewBudget(w.Size())
	wheelFacts(w, func(fact string) { whole.line("", 0, []byte(fact)) })
	promised, tag := promisedGlibc(w.Name.Platform)
	var parts [][]Finding
	var errs []error
	for _, f := range w.Files {
		if !wheel.IsLibrary(f.Name) {
			continue
		}
		part := e.libraries.scan()
		err := memberFacts(ctx, w, budget, f.Name, func(fact string) {
			part.line(f.Name, 0, []byte(fact))
			whole.line(f.Name, 0, []byte(fact))
			if floor, ok := strings.CutPrefix(fact, "floor: GLIBC_"); ok && tag != "" && elf.CompareVersions(floor, promised) > 0 {
				whole.line(f.Name, 0, []byte("above-tag: GLIBC_"+floor+" "+tag))
			}
		})
		if err != nil {
			errs = append(errs, diag.At(diag.Pos{File: name}, "%w", err))
			continue
		}
		parts = append(parts, part.findings())
	}
	if len(errs) == 0 {
		parts = append(parts, whole.findings())
	}
	return Report{name, "wheel", whole.serial, merge(parts)}, errors.Join(errs...)
}

// memberFacts visits the facts of one file of a wheel. A linker script has the name of
// a library but no facts.
func memberFacts(ctx context.Context, w *wheel.Wheel, budget *elf.Budget, name string, visit func(string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := w.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	if !elf.Is(r) {
		return nil
	}
	if err := Facts(ctx, budget.Reader(ctx, r), visit); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

// Text examines a text as a log, or as the facts of a library or wheel.
func (e *Examiner) Text(of Subject, text string) (Report, error) {
	s, kind := e.logs.scan(), "log"
	switch of {
	case Library:
		s, kind = e.libraries.scan(), "library"
	case Wheel:
		s, kind = e.wheels.scan(), "wheel"
	}
	lines, err := s.lines(strings.NewReader(text))
	return Report{Kind: kind, Lines: lines, Findings: s.findings()}, err
}

// Cause returns the first finding of a log if it is an error. It returns false if there
// is none, or if the log cannot be read.
func (e *Examiner) Cause(ctx context.Context, name string) (Diagnosis, bool) {
	report, err := e.File(ctx, name)
	if err != nil || len(report.Findings) == 0 || report.Findings[0].Severity != Error {
		return Diagnosis{}, false
	}
	return report.Findings[0].Diagnosis, true
}
