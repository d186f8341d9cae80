package nccltests

import (
	"fmt"
	"regexp"
	"strings"
)

// unsupported is the exit code of a program that has run no collective.
const unsupported = 5

// exits describes the exit codes of the programs (testResult_t in src/common.h). The
// meaning of 6 and 7 has changed. Wrong values are 1 up to 2.17.2, 6 up to 2.17.6, and
// 7 since 2.17.7, where 6 is invalid usage.
var exits = map[int]string{
	1:           "an internal error, or wrong values (up to 2.17.2)",
	2:           "an error of CUDA or HIP",
	3:           "an error of NCCL or RCCL",
	4:           "the time limit of the program",
	unsupported: "an unsupported request, such as more GPUs than the host has",
	6:           "wrong values (2.17.3 to 2.17.6), or invalid usage (2.17.7 and later)",
	7:           "wrong values",
	126:         "not executable",
	127:         "program or library not found",
	255:         "a refused option",
}

// words describes the end of the program.
func (e ended) words() string {
	switch text, known := exits[e.exit]; {
	case e.signal != 0:
		return fmt.Sprintf("signal %d (%v)", int(e.signal), e.signal)
	case known:
		return fmt.Sprintf("exit %d (%s)", e.exit, text)
	}
	return fmt.Sprintf("exit %d", e.exit)
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
