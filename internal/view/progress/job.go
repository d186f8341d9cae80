package progress

import (
	"cmp"
	"fmt"
	"time"

	"builder/internal/view/term"
)

// A job is a cell of the run, or another task with steps.
type job struct {
	id, label string
	planned   bool      // a cell of the run: shown until it is done
	begun     time.Time // zero until its first step
	ended     bool
	failed    bool

	step  string // the latest step, which may have ended
	since time.Time
	over  bool
	waits bool
	last  string    // last line of the step's log
	shown time.Time // when a plain log last mentioned it
	moved transfer
}

func newJob(id string, planned bool) *job {
	return &job{id: id, label: term.OneLine(id), planned: planned}
}

func (j *job) running() bool { return !j.begun.IsZero() && !j.ended }

func (j *job) start(step string, waits bool, now time.Time) {
	if j.begun.IsZero() {
		j.begun = now
	}
	j.step, j.since, j.shown, j.waits = step, now, now, waits
	j.over, j.last, j.moved = false, "", transfer{}
}

func (j *job) done(step string) {
	if j.step == step {
		j.over, j.waits, j.last, j.moved = true, false, "", transfer{}
	}
}

// says returns the latest state of the running step: its transferred bytes or the last
// line of its log.
func (j *job) says() string { return cmp.Or(j.moved.String(), j.last) }

// transfer counts the bytes transferred by a step.
type transfer struct {
	done, total int64
	shown       time.Time // when an event last mentioned it
}

// String returns the bytes, of all bytes if their number is known.
func (t transfer) String() string {
	switch {
	case t.total > 0:
		return fmt.Sprintf("%.1f of %.1f MB", float64(t.done)/1e6, float64(t.total)/1e6)
	case t.done > 0:
		return fmt.Sprintf("%.1f MB", float64(t.done)/1e6)
	}
	return ""
}
