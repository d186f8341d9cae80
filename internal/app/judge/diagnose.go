package judge

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/machine/nccllog"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/diagnose"
	"builder/internal/view/report"
)

// Diagnose examines files for known failures. The file name - stands for in. The error
// joins the errors of unreadable files.
func Diagnose(ctx context.Context, cat catalogue.Catalogue, files []string, in io.Reader) ([]Examined, error) {
	e, err := cat.Examiner()
	if err != nil {
		return nil, err
	}
	var reports []Examined
	var errs []error
	for _, file := range files {
		report, err := examine(ctx, e, file, in)
		if err != nil {
			errs = append(errs, err)
		}
		if err == nil || len(report.Findings) > 0 {
			reports = append(reports, report)
		}
	}
	return reports, errors.Join(errs...)
}

// Diagnosable expands the arguments to files: a directory stands for its logs.
func Diagnosable(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, diag.Errorf(diag.Usage, "diagnose: name a file, a directory, or - for standard input").
			WithHint("builder diagnose out/CELL")
	}
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if arg == "-" || err != nil || !info.IsDir() {
			files = append(files, arg) // reading it reports the error
			continue
		}
		inside, err := logsIn(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, inside...)
	}
	return files, nil
}

// logsIn returns the logs below the directory of one or more cells. In the output
// directory of a run, it leaves out cells of earlier runs.
func logsIn(dir string) ([]string, error) {
	var files []string
	run, err := report.Read(filepath.Join(dir, "run.json"))
	known := err == nil
	for _, pattern := range []string{"*.log", "logs/*.log", "*/logs/*.log"} {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			cell, _, below := strings.Cut(name, "/")
			if known && below && !slices.ContainsFunc(run.Cells, func(c report.Cell) bool { return c.ID == cell }) {
				continue
			}
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
				return nil, diag.At(diag.Pos{File: path}, "not a regular file")
			}
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		return nil, diag.Errorf(diag.Usage, "%s has no logs", dir).
			WithHint("name the directory of a cell below --out, or the files")
	}
	return files, nil
}

// Examined holds the known failures found in a file. Run describes how the ranks of a
// job connected. It is nil if the file is no log of such a job.
type Examined struct {
	diagnose.Report
	Run *nccllog.Evidence `json:"run,omitempty"`
}

func examine(ctx context.Context, e *diagnose.Examiner, file string, in io.Reader) (Examined, error) {
	if file == "-" {
		return examineInput(ctx, e, "standard input", interruptible(ctx, in))
	}
	f, err := os.Open(file)
	if err != nil {
		return Examined{Report: diagnose.Report{File: file}}, diag.Errorf(diag.Usage, "%w", err).
			WithHint("name a log, the directory of a cell below --out, or - for standard input")
	}
	defer f.Close()
	return examineInput(ctx, e, file, f)
}

// interruptible returns a reader that ends with its context, also while r waits for input.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	read, write := io.Pipe()
	go func() {
		_, err := io.Copy(write, r)
		write.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { write.CloseWithError(context.Cause(ctx)) })
	return read
}

// examineInput reads a stream once and passes it to both parsers.
func examineInput(ctx context.Context, e *diagnose.Examiner, name string, in io.Reader) (Examined, error) {
	read, write := io.Pipe()
	type result struct {
		run *nccllog.Evidence
		err error
	}
	done := make(chan result, 1)
	go func() {
		run, err := runIn(read)
		_, _ = io.Copy(io.Discard, read) // the writer must not block
		done <- result{run, err}
	}()
	report, err := e.Log(ctx, name, io.TeeReader(in, write))
	write.Close()
	other := <-done
	return Examined{report, other.run}, errors.Join(err, other.err)
}

// runIn reads from an NCCL or RCCL log how the ranks of a job connected. It returns nil
// for other logs.
func runIn(r io.Reader) (*nccllog.Evidence, error) {
	run, err := nccllog.Survey(r)
	if err != nil || !run.Shown() {
		return nil, err
	}
	return &run, nil
}

// DiagnosedJSON returns the --json form of examined files.
func DiagnosedJSON(reports []Examined) any {
	for i := range reports {
		reports[i].Findings = append([]diagnose.Finding{}, reports[i].Findings...) // a list, not null
	}
	return map[string]any{"files": append([]Examined{}, reports...)}
}
