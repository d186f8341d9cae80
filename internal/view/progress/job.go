package progress

import (
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
func (j *job) says(now time.Time) string {
	if text := j.moved.String(now); text != "" {
		return text
	}
	return j.last
}

// transfer counts the bytes transferred by a step.
type transfer struct {
	done, total int64
	first       int64 // bytes from an earlier run
	since       time.Time
	shown       time.Time // when an event last mentioned it
}

// String returns the bytes with a bar and the rate, if known.
func (t transfer) String(now time.Time) string {
	if t.since.IsZero() {
		return ""
	}
	text := megabytes(t.done) + " MB"
	if t.total > 0 {
		text = fmt.Sprintf("%s %s of %s MB", bar(t.done, t.total), megabytes(t.done), megabytes(t.total))
	}
	if took := now.Sub(t.since); took >= time.Second && t.done > t.first {
		text += fmt.Sprintf(", %.1f MB/s", float64(t.done-t.first)/1e6/took.Seconds())
	}
	return text
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }

const barWidth = 10

func bar(done, total int64) string {
	full := int(min(max(done, 0), total) * barWidth / total)
	out := []byte("[..........]")
	for i := range full {
		out[i+1] = '#'
	}
	return string(out)
}

// totals counts the cells of a run.
type totals struct {
	all, done, failed, running, waiting int
	elapsed                             time.Duration
}

// total counts the jobs at the time now.
func total(jobs []*job, begun, now time.Time) totals {
	t := totals{elapsed: now.Sub(begun)}
	for _, j := range jobs {
		switch {
		case !j.planned:
			continue
		case j.ended:
			t.done++
			if j.failed {
				t.failed++
			}
		case j.running() && !j.waits:
			t.running++
		default:
			t.waiting++
		}
		t.all++
	}
	return t
}

// short formats a duration without trailing zero units: 12m, 1h3m.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour < time.Minute:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute && d%time.Minute < time.Second:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.Truncate(time.Second).String()
}
