package progress

import (
	"cmp"
	"time"

	"builder/internal/view/term"
)

// EventSchema is the version of the event format. New fields may be added without a new
// version, so readers must ignore unknown fields.
const EventSchema = 1

// Kind is the type of an event.
type Kind string

// The kinds of events. Each comment lists the fields in use.
const (
	RunStarted  Kind = "run-started"  // cells
	CellStarted Kind = "cell-started" // cell: before its first step; never for a cell from a store
	StepStarted Kind = "step-started" // cell, step, status if it waits
	LogLine     Kind = "line"         // cell, step, text: only if log lines are requested
	Bytes       Kind = "bytes"        // cell, step, done, total: at most once a second
	StepDone    Kind = "step-done"    // cell, step, status, seconds, text if it failed
	CellDone    Kind = "cell-done"    // cell, status, seconds, text
	Note        Kind = "note"         // text
	Fault       Kind = "fault"        // code, text, hint, log: after all other events
	RunDone     Kind = "run-done"     // seconds
)

// Kinds lists every kind of event.
func Kinds() []Kind {
	return []Kind{RunStarted, CellStarted, StepStarted, LogLine, Bytes, StepDone, CellDone, Note, Fault, RunDone}
}

// The states of a step. The states of a cell are the statuses in run.json.
const (
	Waiting = "waiting" // idle until other cells release resources
	Done    = "done"
	Cached  = "cached" // its result already existed
	Failed  = "failed"
	Stopped = "stopped" // still running when the display closed
)

// Event is one line of --progress json. Its Kind determines which fields are set.
type Event struct {
	Schema  int       `json:"schema" jsonschema:"enum=1,description=number of this format"`
	Time    time.Time `json:"time" jsonschema:"description=when it happened in UTC"`
	Event   Kind      `json:"event" jsonschema:"enum=run-started,enum=cell-started,enum=step-started,enum=line,enum=bytes,enum=step-done,enum=cell-done,enum=note,enum=fault,enum=run-done,description=what happened"`
	Cells   []string  `json:"cells,omitempty" jsonschema:"description=ids of all cells of the run in their order"`
	Cell    string    `json:"cell,omitempty" jsonschema:"description=id of the cell or the name of what else is looked at"`
	Step    string    `json:"step,omitempty" jsonschema:"description=name of the step"`
	Status  string    `json:"status,omitempty" jsonschema:"description=waiting - done - cached - failed or stopped for a step; that of run.json for a cell"`
	Seconds *float64  `json:"seconds,omitempty" jsonschema:"description=how long it took"`
	Done    *int64    `json:"done,omitempty" jsonschema:"description=bytes that were moved"`
	Total   *int64    `json:"total,omitempty" jsonschema:"description=bytes that are to be moved"`
	Code    string    `json:"code,omitempty" jsonschema:"description=name of the exit code that a fault stands for"`
	Text    string    `json:"text,omitempty" jsonschema:"description=a line of a log or what is said to people"`
	Hint    string    `json:"hint,omitempty" jsonschema:"description=what mends a fault"`
	Log     string    `json:"log,omitempty" jsonschema:"description=path of the log that explains a fault"`
}

// said returns the text of an event after the names of its cell and step.
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

// ended returns the final state with its duration and error.
func (e Event) ended() string {
	text := e.Status
	if e.Seconds != nil && e.Status != Cached {
		text += " " + e.took()
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return term.Truncate(text, maxText)
}

// took formats the duration of an event; nil counts as zero.
func (e Event) took() string {
	return term.Duration(time.Duration(*cmp.Or(e.Seconds, new(0.0)) * float64(time.Second)))
}
