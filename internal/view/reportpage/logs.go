package reportpage

import (
	"io"
	"io/fs"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/view/report"
	"builder/internal/view/term"
)

// The bounds of the excerpt of one log.
const (
	maxLogBytes = 64 << 10
	maxLogLines = 40
)

// excerpt is the end of a failed step's log.
type excerpt struct{ Path, Text string }

// excerpts returns the ends of the logs that explain why a cell did not pass.
func excerpts(c report.Cell, logs fs.FS) []excerpt {
	if logs == nil {
		return nil
	}
	var all []excerpt
	for _, s := range failedSteps(c) {
		if text := tail(logs, s.Log); text != "" {
			all = append(all, excerpt{s.Log, text})
		}
	}
	return all
}

// gateStep begins the name of the step of a gate.
const gateStep = "gate "

// failedSteps returns the steps that explain why a cell did not pass: its last step if it
// has no result, and those of the refusing gates.
func failedSteps(c report.Cell) []report.Step {
	refused := map[string]bool{}
	for _, v := range c.Verdicts {
		refused[gateStep+v.Gate] = v.Refuses()
	}
	var all []report.Step
	for i, s := range c.Steps {
		if refused[s.Name] || c.Error != nil && i == len(c.Steps)-1 {
			all = append(all, s)
		}
	}
	return all
}

// tail returns the last lines of a log, or "" if it is not readable.
func tail(logs fs.FS, path string) string {
	f, err := logs.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if seeker, ok := f.(io.Seeker); ok && info.Size() > maxLogBytes {
		if _, err := seeker.Seek(-maxLogBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxLogBytes))
	if err != nil {
		return ""
	}
	lines := slices.Collect(strings.SplitSeq(strings.TrimRight(string(data), "\n"), "\n"))
	return diag.Redact(term.Clean(strings.Join(lines[max(0, len(lines)-maxLogLines):], "\n")))
}
