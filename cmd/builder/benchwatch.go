package main

import (
	"fmt"
	"time"

	"builder/internal/machine/bench"
	"builder/internal/view/progress"
)

// benchWatch shows the sweeps and keeps what each round adds.
type benchWatch struct {
	progress *progress.Display
	begun    bench.Result
	dir      string
	rounds   int
	spent    time.Duration // in the sweeps so far
	last     bench.Turn
}

// Began implements [bench.Events].
func (w *benchWatch) Began(s bench.Turn) {
	w.progress.Start(w.round(s), w.name(s))
	w.progress.Line(w.round(s), w.left(s))
}

// Ended implements [bench.Events].
func (w *benchWatch) Ended(s bench.Turn, d time.Duration, err error) {
	w.spent += d
	w.progress.Done(w.round(s), w.name(s), d, false, err)
	s.Done, s.Left = s.Done+1, s.Left-1
	w.last = s
}

// Saved implements [bench.Events]. A file that cannot be written now is said; the
// last one that cannot is an error.
func (w *benchWatch) Saved(r bench.Result) {
	w.progress.Note("%s", w.left(w.last))
	if err := writeBench(w.dir, w.complete(r)); err != nil {
		w.progress.Note("%v", err)
	}
}

// complete adds what was known before. What the driver says of the GPUs is more
// than what the programs do.
func (w *benchWatch) complete(r bench.Result) bench.Result {
	r.Builder, r.Command, r.Started = w.begun.Builder, w.begun.Command, w.begun.Started
	if len(w.begun.Host.GPUs) > 0 {
		r.Host = w.begun.Host
	}
	return r
}

func (w *benchWatch) round(s bench.Turn) string {
	if s.Round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d of %d", s.Round, w.rounds)
}

func (w *benchWatch) name(s bench.Turn) string { return s.Program.Collective + " " + s.Library.Label }

// left estimates the rest by the mean of what was.
func (w *benchWatch) left(s bench.Turn) string {
	said := fmt.Sprintf("%d of %d sweeps done", s.Done, s.Done+s.Left)
	if s.Done == 0 {
		return said
	}
	rest := w.spent / time.Duration(s.Done) * time.Duration(s.Left)
	return fmt.Sprintf("%s, about %v left", said, rest.Round(time.Second))
}
