package nccltests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"builder/internal/base/regular"
	"builder/internal/machine/nccllog"
)

// maxQuestion limits the run time of the loader and of --help. The first start of a
// library of 200 MB reads it from disk.
const maxQuestion = 60 * time.Second

// Errors of a run without a report. Any other error means unusable output.
var (
	ErrNotStarted = errors.New("it did not start")       // caused by the host or the arguments
	ErrTimeout    = errors.New("it did not end in time") // it was killed after the timeout
	ErrFailed     = errors.New("it failed")              // it exited with a failure
)

// Run runs a program of nccl-tests or rccl-tests and parses its measurements. A run
// with wrong values is not an error: the report contains them. With an error, Run also
// returns the log and output so far.
func Run(ctx context.Context, s Sweep) (Measured, error) {
	if err := s.problem(); err != nil {
		return Measured{}, fmt.Errorf("running %s: %w", filepath.Base(s.Program), err)
	}
	dir, err := os.MkdirTemp("", "nccl-tests-*")
	if err != nil {
		return Measured{}, err
	}
	defer os.RemoveAll(dir)
	if s, err = s.absolute(); err != nil {
		return Measured{}, err
	}
	if err := s.Guest.Give(dir); err != nil {
		return Measured{}, err
	}
	m, err := s.run(ctx, dir)
	if err != nil {
		return m, fmt.Errorf("running %s: %w", filepath.Base(s.Program), err)
	}
	return m, nil
}

// absolute returns the sweep with absolute paths.
func (s Sweep) absolute() (Sweep, error) {
	var err error
	if s.Program, err = filepath.Abs(s.Program); err == nil && s.Library != "" {
		s.Library, err = filepath.Abs(s.Library)
	}
	return s, err
}

// reads lists the directories with the program, the library and the libraries that the
// user named.
func (s Sweep) reads() []string {
	dirs := []string{filepath.Dir(s.Program)}
	if s.Library != "" {
		dirs = append(dirs, s.Library)
	}
	for _, dir := range filepath.SplitList(s.Env["LD_LIBRARY_PATH"]) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func (s Sweep) run(ctx context.Context, dir string) (Measured, error) {
	c := command{
		guest: s.Guest, path: s.Program, env: environ(s, dir, nil), dir: dir, read: s.reads(), write: []string{dir}, network: s.Network,
		limit: min(s.Timeout, maxQuestion),
	}
	if err := c.prepare(ctx, s, dir); err != nil {
		return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, unstartable(s.Program, err))
	}
	writes, err := c.writesJSON(ctx)
	if err != nil {
		return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, unstartable(s.Program, err))
	}
	c.args, c.limit = s.arguments(), s.Timeout
	if writes {
		c.args = append(c.args, "-J", filepath.Join(dir, document))
	}
	if len(s.Launcher) > 0 {
		if err := c.shared(ctx, s, dir); err != nil {
			return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
		if c, err = c.launched(s.Launcher); err != nil {
			return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
	}
	end, err := c.run(ctx)
	m := Measured{Output: end.stdout + end.stderr}
	var files int
	var logErr error
	m.Log, files, logErr = logs(dir)
	if err != nil && len(s.Launcher) > 0 && files < s.GPUs && ctx.Err() == nil {
		return m, s.notReached(files, err)
	}
	if err != nil {
		return m, fmt.Errorf("%w; it last printed: %s; the library last logged: %s", err, lastLines(m.Output), lastLines(m.Log))
	}
	m.Report, err = end.report(dir)
	if err = errors.Join(err, logErr); len(s.Launcher) > 0 {
		err = s.oneJob(m.Report, files, err)
	}
	if m.Report.Program == "" {
		m.Report.Program = filepath.Base(s.Program)
	}
	return m, err
}

// prepare checks that the loader will use the intended library. It adds the directories
// of run-time libraries outside the loader's path to the environment.
func (c *command) prepare(ctx context.Context, s Sweep, dir string) error {
	l, err := c.trace(ctx)
	if err != nil {
		return err
	}
	if dirs := supply(l.missing, runtimes); len(dirs) > 0 {
		c.env = environ(s, dir, dirs)
		if l, err = c.trace(ctx); err != nil {
			return err
		}
	}
	return l.problem(s.Library)
}

// writesJSON reports whether the program has the option -J. In every release, --help
// exits with 0 without using a GPU.
func (c command) writesJSON(ctx context.Context) (bool, error) {
	c.args, c.limit = []string{"--help"}, min(c.limit, maxQuestion)
	end, err := c.run(ctx)
	if err != nil {
		return false, err
	}
	if end.exit != 0 {
		return false, fmt.Errorf("%s: %s", end.words(), end.telling())
	}
	return strings.Contains(end.stdout+end.stderr, "--output_file"), nil
}

// report parses the table of a finished program. If the program also wrote JSON, report
// takes the numbers from there, because they have more digits.
func (e ended) report(dir string) (Report, error) {
	report, err := Parse(strings.NewReader(e.stdout))
	switch {
	case err != nil && e.exit == unsupported:
		return Report{}, fmt.Errorf("%w: %s: %s", ErrNotStarted, e.words(), e.telling())
	case err != nil && e.exit != 0:
		return Report{}, fmt.Errorf("%w: %s: %s", ErrFailed, e.words(), e.telling())
	case err != nil:
		return Report{}, fmt.Errorf("it ended with 0, and its output is not a measurement: %w; it last printed: %s", err, lastLines(e.stdout+e.stderr))
	case e.exit != 0 && report.OutOfBounds == 0:
		return Report{}, fmt.Errorf("%w, although its table is complete: %s: %s", ErrFailed, e.words(), e.telling())
	}
	exact, err := readDocument(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err == nil {
		err = report.refine(exact)
	}
	return report, err
}

// document is the name of the JSON in the directory of a run.
const document = "report.json"

// readDocument reads the JSON. The program may have left a link or a pipe in its place.
func readDocument(dir string) (Report, error) {
	in, err := regular.Inside(dir, maxOutput)
	if err != nil {
		return Report{}, err
	}
	f, err := in.Open(document)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	return Parse(f)
}

// refine replaces the rows by those of the JSON. Both come from one run, so a
// difference in sizes, counts or checks is an error.
func (r *Report) refine(exact Report) error {
	if len(exact.Rows) != len(r.Rows) || exact.OutOfBounds != r.OutOfBounds {
		return fmt.Errorf("the JSON has %d rows and %d out of bounds, the table %d and %d", len(exact.Rows), exact.OutOfBounds, len(r.Rows), r.OutOfBounds)
	}
	for i, row := range exact.Rows {
		have := r.Rows[i]
		if row.Bytes != have.Bytes || row.Count != have.Count || row.OutOfPlace.Checked != have.OutOfPlace.Checked || row.InPlace.Checked != have.InPlace.Checked {
			return fmt.Errorf("row %d has %d bytes in the JSON and %d in the table, or only one of them has it as checked", i+1, row.Bytes, have.Bytes)
		}
	}
	r.Rows = exact.Rows
	if r.Library == 0 {
		r.Library = exact.Library
	}
	return nil
}

// logs returns the library's logs and their number, one for each process. A link to a
// file outside of the directory is an error.
func logs(dir string) (text string, n int, err error) {
	in, err := regular.Inside(dir, nccllog.MaxLog)
	if err != nil {
		return "", 0, err
	}
	files, err := fs.Glob(in, "nccl.*.log")
	if err != nil {
		return "", 0, err
	}
	var b strings.Builder
	for _, name := range files {
		f, err := in.Open(name)
		if err != nil {
			return b.String(), len(files), err
		}
		_, err = io.Copy(&b, io.LimitReader(f, nccllog.MaxLog-int64(b.Len())+1))
		if err = errors.Join(err, f.Close()); err == nil && b.Len() > nccllog.MaxLog {
			err = fmt.Errorf("the library logged more than %d bytes", nccllog.MaxLog)
		}
		if err != nil {
			return b.String(), len(files), err
		}
	}
	return b.String(), len(files), nil
}

// unstartable explains why a program cannot be executed.
func unstartable(program string, err error) error {
	info, stat := os.Stat(program)
	switch {
	case errors.Is(err, syscall.ENOENT) && stat == nil:
		return fmt.Errorf("%s exists, but its loader or interpreter is missing: it was built for another libc or distribution: %w", program, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", program)
	case errors.Is(err, fs.ErrPermission) && stat == nil && info.IsDir():
		return fmt.Errorf("%s is a directory", program)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable: %w", program, err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine: %w", program, err)
	}
	return err
}
