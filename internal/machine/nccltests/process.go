package nccltests

import (
	"context"
	"fmt"
	"regexp"
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
