package nccltests

import (
	"fmt"
	"regexp"
	"strings"
)

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
