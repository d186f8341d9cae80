package nccltests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/machine/guest"
)

// grace is the time between SIGTERM and SIGKILL for a process group.
var grace = 5 * time.Second

// command is a program to run in its own process group, with exactly this environment.
type command struct {
	guest.Program
	guest guest.Guest
	limit time.Duration
}

// ended is the result of a finished program.
type ended struct {
	guest.End
	stdout, stderr string
}

// run runs the program until its process group ends. It returns an error if the program
// cannot be executed, takes too long, prints too much, or ctx ends. The output so far
// comes with the error.
func (c command) run(ctx context.Context) (ended, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("%w: killed after %v", ErrTimeout, c.limit))
	defer cancel()
	stdout, stderr := &guest.Output{Max: maxOutput}, &guest.Output{Max: maxOutput}
	end, err := c.guest.Run(ctx, c.Program, stdout, stderr)
	return ended{end, stdout.String(), stderr.String()}, err
}

// maxOutput bounds each output of a program, in bytes. The longest real one has some
// hundred lines.
const maxOutput = 16 << 20

// banner matches the lines with which Open MPI ends a failed job, whatever the reason is.
var banner = regexp.MustCompile(`^-{20,}$|^(prterun|mpirun) (detected|noticed)|^thus causing the job|^Process name: +\[|^Exit code: +\d`)

// lastLines returns the last three nonempty lines as one line of at most 600
// characters.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "# ") != "" && !banner.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "nothing"
	}
	joined := []rune(strings.Join(lines[max(0, len(lines)-3):], " | "))
	if len(joined) > 600 {
		return "…" + string(joined[len(joined)-600:])
	}
	return string(joined)
}

// unsupported is the exit code of a program that has run no collective.
const unsupported = 5

// words describes the end of the program.
func (e ended) words() string {
	switch {
	case e.Signal != 0:
		return fmt.Sprintf("signal %d (%v)", int(e.Signal), e.Signal)
	case e.Exit == unsupported:
		return fmt.Sprintf("exit %d (an unsupported request, such as more GPUs than the host has)", e.Exit)
	}
	return fmt.Sprintf("exit %d", e.Exit)
}

// tells matches lines with the reason of a failure.
var tells = regexp.MustCompile(`: Test (CUDA|NCCL|HIP) failure |: Test timeout \(|error while loading shared libraries|version .* not found|symbol lookup error|Invalid number of GPUs|^# error: `)

// telling returns the first lines with a reason, or else the last nonempty lines.
func (e ended) telling() string {
	var found []string
	for line := range strings.Lines(e.stdout + "\n" + e.stderr) {
		if line = strings.TrimSpace(line); tells.MatchString(line) && len(found) < 3 {
			found = append(found, line)
		}
	}
	if len(found) > 0 {
		return lastLines(strings.Join(found, "\n"))
	}
	return lastLines(e.stdout + "\n" + e.stderr)
}

// collective matches the line of NCCL or RCCL in the plan of a dynamic loader.
var collective = regexp.MustCompile(`(?m)^\s*lib[nr]ccl\.so\S* => (/\S.*) \(0x[0-9a-f]+\)$`)

// loads returns an error if the program's own loader takes another NCCL or RCCL than that
// in the directory library. The loader prints its plan in the environment of the run, like
// ldd. A program without a loader ignores the question and prints its help.
func (c command) loads(ctx context.Context, library string) error {
	c.Env = append(slices.Clip(c.Env), "LD_TRACE_LOADED_OBJECTS=1")
	end, err := c.run(ctx)
	if err != nil {
		return err
	}
	for _, m := range collective.FindAllStringSubmatch(end.stdout+"\n"+end.stderr, -1) {
		if !within(m[1], library) {
			return fmt.Errorf("the loader takes %s, not the library in %s: a DT_RPATH of the program comes before LD_LIBRARY_PATH", m[1], library)
		}
	}
	return nil
}

// within reports whether a file is in a directory, by identity and not by path, so
// links do not matter.
func within(file, dir string) bool {
	have, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return false
	}
	want, err := os.Stat(dir)
	return err == nil && os.SameFile(have, want)
}
