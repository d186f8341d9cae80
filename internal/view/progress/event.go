package progress

import (
	"time"

	"builder/internal/base/diag"
	"builder/internal/view/term"
)

// kind is the type of an event.
type kind int

// The kinds of events. Each comment lists the fields in use.
const (
	stepStarted kind = iota // cell, step
	logLine                 // cell, step, text: only if log lines are requested
	stepDone                // cell, step, status, seconds, text if it failed
	cellDone                // cell, status, seconds, text
	note                    // text
	fault                   // code, text, hint: after all other events
)

// The states of a step. The states of a cell are the statuses in run.json.
const (
	done    = "done"
	cached  = "cached" // its result already existed
	failed  = "failed"
	stopped = "stopped" // still running when the display closed
)

// event is what a view prints once. Its kind determines which fields are set.
type event struct {
	kind       kind
	cell, step string
	status     string
	took       time.Duration
	code       string // name of the exit code that a fault stands for
	at         diag.Pos
	text, hint string
}

// said returns the text of an event after the names of its cell and step.
func (e event) said() string {
	switch e.kind {
	case stepStarted:
		return "started"
	case stepDone, cellDone:
		return e.ended()
	case logLine:
		return "| " + e.text
	}
	return e.text
}

// ended returns the final state with its duration and error.
func (e event) ended() string {
	text := e.status
	if e.status != cached {
		text += " " + term.Duration(e.took)
	}
	if e.text != "" {
		text += ": " + e.text
	}
	return term.Truncate(text, maxText)
}
