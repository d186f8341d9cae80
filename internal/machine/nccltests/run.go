package nccltests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/regular"
	"builder/internal/machine/guest"
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
	if strings.Contains(s.Library, ":") {
		return Measured{}, fmt.Errorf("running %s: %q holds a colon, which separates directories in LD_LIBRARY_PATH", filepath.Base(s.Program), s.Library)
	}
	dir, err := os.MkdirTemp("", "nccl-tests-*")
	if err != nil {
		return Measured{}, err
	}
	defer os.RemoveAll(dir)
	if s.Program, err = filepath.Abs(s.Program); err == nil && s.Library != "" {
		s.Library, err = filepath.Abs(s.Library)
	}
	if err != nil {
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
	c := command{guest.Program{
		Path: s.Program, Env: environ(s, dir), Dir: dir, Read: s.reads(), Write: []string{dir}, Network: s.Network, Grace: grace,
	}, s.Guest, min(s.Timeout, maxQuestion)}
	if err := c.starts(ctx, s.Library); err != nil {
		return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	c.Args, c.limit = s.arguments(), s.Timeout
	if len(s.Launcher) > 0 {
		var err error
		if c, err = c.launched(s.Launcher); err != nil {
			return Measured{}, fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
	}
	end, err := c.run(ctx)
	log, files, logErr := logs(dir)
	m := Measured{Output: end.stdout + end.stderr, Log: log}
	if err != nil && len(s.Launcher) > 0 && files < s.GPUs && ctx.Err() == nil {
		return m, s.notReached(files, err)
	}
	if err != nil {
		return m, fmt.Errorf("%w; it last printed: %s; the library last logged: %s", err, lastLines(m.Output), lastLines(m.Log))
	}
	m.Report, err = end.report()
	if err = errors.Join(err, logErr); len(s.Launcher) > 0 {
		err = s.oneJob(m.Report, files, err)
	}
	if m.Report.Program == "" {
		m.Report.Program = filepath.Base(s.Program)
	}
	return m, err
}

// starts checks that the program starts, and that the loader takes the library in the
// directory library. In every release, --help exits with 0 without using a GPU.
func (c command) starts(ctx context.Context, library string) error {
	c.Args = []string{"--help"}
	end, err := c.run(ctx)
	if err == nil && end.Exit != 0 {
		err = fmt.Errorf("%s: %s", end.words(), end.telling())
	}
	if err != nil || library == "" {
		return err
	}
	return c.loads(ctx, library)
}

// report parses the table of a finished program.
func (e ended) report() (Report, error) {
	report, err := Parse(e.stdout)
	switch {
	case err != nil && e.Exit == unsupported:
		return Report{}, fmt.Errorf("%w: %s: %s", ErrNotStarted, e.words(), e.telling())
	case err != nil && e.Exit != 0:
		return Report{}, fmt.Errorf("%w: %s: %s", ErrFailed, e.words(), e.telling())
	case err != nil:
		return Report{}, fmt.Errorf("it ended with 0, and its output is not a measurement: %w; it last printed: %s", err, lastLines(e.stdout+e.stderr))
	case e.Exit != 0 && report.OutOfBounds == 0:
		return Report{}, fmt.Errorf("%w, although its table is complete: %s: %s", ErrFailed, e.words(), e.telling())
	}
	return report, nil
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
		log, err := fs.ReadFile(in, name)
		if b.Write(log); b.Len() > nccllog.MaxLog {
			err = fmt.Errorf("the library logged more than %d bytes", nccllog.MaxLog)
		}
		if err != nil {
			return b.String(), len(files), err
		}
	}
	return b.String(), len(files), nil
}
