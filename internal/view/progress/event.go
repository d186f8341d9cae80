package progress

import (
	"fmt"
	"time"

	"builder/internal/view/term"
)

// EventSchema is the number of the format of events. A field may be added without
// a new number; whoever reads events passes over what they do not know.
const EventSchema = 1

// Kind says what happened.
type Kind string

// The kinds of events.
const (
	RunStarted  Kind = "run-started"  // cells, estimate
	CellStarted Kind = "cell-started" // cell, estimate: before the first of its steps; what is taken from a store has none
	StepStarted Kind = "step-started" // cell, step, status where it waits, estimate
	LogLine     Kind = "line"         // cell, step, text; only where lines are asked for
	Bytes       Kind = "bytes"        // cell, step, done, total: once a second at most
	StepDone    Kind = "step-done"    // cell, step, status, seconds, text where it failed
	CellDone    Kind = "cell-done"    // cell, status, seconds, text
	Note        Kind = "note"         // text
	Fault       Kind = "fault"        // code, text, hint, log: last of all
	RunDone     Kind = "run-done"     // seconds
)

// Kinds lists every kind of event.
func Kinds() []Kind {
	return []Kind{RunStarted, CellStarted, StepStarted, LogLine, Bytes, StepDone, CellDone, Note, Fault, RunDone}
}

// The states of a step. Those of a cell are its statuses in run.json.
const (
	Waiting = "waiting" // it does nothing until others make room
	Done    = "done"
	Cached  = "cached" // its result was there
	Failed  = "failed"
	Stopped = "stopped" // it had not ended when the display did
)

// Event is something that happened, as --progress json writes it: one line each.
// Kind says which fields an event has.
type Event struct {
	Schema   int       `json:"schema" jsonschema:"enum=1,description=number of this format"`
	Time     time.Time `json:"time" jsonschema:"description=when it happened in UTC"`
	Event    Kind      `json:"event" jsonschema:"enum=run-started,enum=cell-started,enum=step-started,enum=line,enum=bytes,enum=step-done,enum=cell-done,enum=note,enum=fault,enum=run-done,description=what happened"`
	Cells    []string  `json:"cells,omitempty" jsonschema:"description=ids of all cells of the run in their order"`
	Cell     string    `json:"cell,omitempty" jsonschema:"description=id of the cell or the name of what else is looked at"`
	Step     string    `json:"step,omitempty" jsonschema:"description=name of the step"`
	Status   string    `json:"status,omitempty" jsonschema:"description=waiting - done - cached - failed or stopped for a step; that of run.json for a cell"`
	Seconds  *float64  `json:"seconds,omitempty" jsonschema:"description=how long it took"`
	Estimate *float64  `json:"estimate,omitempty" jsonschema:"description=how many seconds it is likely to take; absent where nothing is known"`
	Done     *int64    `json:"done,omitempty" jsonschema:"description=bytes that were moved"`
	Total    *int64    `json:"total,omitempty" jsonschema:"description=bytes that are to be moved"`
	Code     string    `json:"code,omitempty" jsonschema:"description=name of the exit code that a fault stands for"`
	Text     string    `json:"text,omitempty" jsonschema:"description=a line of a log or what is said to people"`
	Hint     string    `json:"hint,omitempty" jsonschema:"description=what mends a fault"`
	Log      string    `json:"log,omitempty" jsonschema:"description=path of the log that explains a fault"`
}

// said is what an event says behind the names of its cell and its step.
func (e Event) said() string {
	switch e.Event {
	case StepStarted:
		if e.Status == Waiting {
			return Waiting
		}
		return "started"
	case StepDone, CellDone:
		return e.ended()
	case LogLine:
		return "| " + e.Text
	}
	return e.Text
}

// ended is the state of what is over, with its time and its fault.
func (e Event) ended() string {
	text := e.Status
	if e.Seconds != nil && e.Status != Cached {
		text += " " + seconds(duration(*e.Seconds))
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return term.Truncate(text, maxText)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// seconds is exact where it matters and readable where it does not.
func seconds(d time.Duration) string {
	if d < 10*time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
