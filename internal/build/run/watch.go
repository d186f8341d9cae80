package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/view/progress"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// watch shows the steps of one cell and keeps their logs.
type watch struct {
	dir, id  string
	progress *progress.Display
	log      *stepLog
}

var _ Events = (*watch)(nil)

// Watch returns the events of each cell, which show its steps and write their logs below
// out.
func Watch(out string, p *progress.Display) func(id string) Events {
	return func(id string) Events {
		return &watch{dir: filepath.Join(out, id, logDir), id: id, progress: p}
	}
}

// logDir holds the logs of a cell, below its directory.
const logDir = "logs"

func logName(step string) string { return strings.ReplaceAll(step, " ", "-") + ".log" }

// LogOf returns the path of a step's log, relative to the output directory.
func LogOf(id, step string) string { return filepath.Join(id, logDir, logName(step)) }

// StepStarted implements [Events]. If it cannot open the log it prints a note and
// continues: a missing log must not stop a build.
func (w *watch) StepStarted(step string) io.Writer {
	w.progress.Start(w.id, step)
	file, err := createLog(w.dir, step)
	if err != nil {
		w.progress.Note("cannot write the log of step %s: %v", step, err)
	}
	w.log = &stepLog{file: file, lines: term.NewLines(func(line string) { w.progress.Line(w.id, line) })}
	return w.log
}

// StepDone implements [Events].
func (w *watch) StepDone(step string, d time.Duration, cached bool, err error) {
	if w.log != nil {
		w.log.close(err)
		w.log = nil
	}
	w.progress.Done(w.id, step, d, cached, err)
}

// createLog creates dir and the log of a step in it. It replaces a log of an earlier run
// by a new file: a link of that name could lead out of the directory.
func createLog(dir, step string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, logName(step))
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// stepLog writes the output of a step to its file and to the display.
type stepLog struct {
	file  *os.File // nil if the file could not be created
	lines *term.Lines
	wrote bool
	last  []byte // what was written last
}

// Write implements [io.Writer].
func (l *stepLog) Write(p []byte) (int, error) {
	_, _ = l.lines.Write(p) // never fails
	l.wrote, l.last = true, append(l.last[:0], p...)
	if l.file == nil {
		return len(p), nil
	}
	return l.file.Write(p)
}

// close ends the log. It adds the step's error, such as a patch that does not apply,
// unless the error repeats output that the log has.
func (l *stepLog) close(err error) {
	if err != nil {
		wrote := l.wrote
		for _, e := range diag.All(err) {
			if wrote && (len(e.Log) > 0 || string(l.last) == e.Error()+"\n") {
				continue
			}
			fmt.Fprintln(l, e)
			for _, line := range e.Log {
				fmt.Fprintln(l, line)
			}
		}
	}
	l.lines.Flush()
	if l.file != nil {
		l.file.Close()
	}
}

// Fetch brings every file of an entry into the store, as a step of its cell.
func Fetch(ctx context.Context, ev Events, f Fetcher, e lock.Entry) error {
	log, start := ev.StepStarted("fetch"), time.Now()
	err := f.Fetch(ctx, e, log)
	ev.StepDone("fetch", time.Since(start), false, err)
	if err != nil {
		return fmt.Errorf("step fetch: %w", err)
	}
	return nil
}

// recorded forwards events and records the steps in a result. If a step starts again
// after the loss of an engine, its earlier record and all later records are dropped.
type recorded struct {
	Events
	result *Result
}

func (r *recorded) StepStarted(step string) io.Writer {
	if i := slices.IndexFunc(r.result.Steps, func(s report.Step) bool { return s.Name == step }); i >= 0 {
		r.result.Steps = r.result.Steps[:i]
	}
	return r.Events.StepStarted(step)
}

func (r *recorded) StepDone(step string, d time.Duration, cached bool, err error) {
	r.Events.StepDone(step, d, cached, err)
	r.result.Steps = append(r.result.Steps, report.Step{
		Name: step, Started: time.Now().Add(-d).UTC().Truncate(time.Millisecond), Seconds: report.Seconds(d.Seconds()),
		Cached: cached, Failed: err != nil,
	})
}
