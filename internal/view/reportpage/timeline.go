package reportpage

import (
	"fmt"
	"strings"
	"time"

	"builder/internal/view/report"
)

// timeline shows when the steps of each cell ran, as fractions of the whole time.
type timeline struct {
	Took string
	Rows []timelineRow
}

type timelineRow struct {
	ID     string
	Engine string // address of the engine
	Bars   []bar
}

// bar is one step. Left and Width are fractions of the whole, 0 to 1.
type bar struct {
	Left, Width float64
	Kind        string // build, gate, waiting or other; sets the colour, and Title has the words
	Title       string
}

// newTimeline leaves out cells from a store, because they took no time in this run.
func newTimeline(run report.Run) timeline {
	begin, end := run.Started, run.Finished
	for _, c := range run.Cells {
		for _, s := range c.Steps {
			if stop := s.Started.Add(length(s)); stop.After(end) {
				end = stop
			}
		}
	}
	whole := end.Sub(begin)
	if whole <= 0 {
		return timeline{}
	}
	t := timeline{Took: human(whole)}
	for _, c := range run.Cells {
		row := timelineRow{ID: c.ID, Engine: c.Engine}
		for _, s := range c.Steps {
			if s.Started.Before(begin) {
				continue
			}
			row.Bars = append(row.Bars, bar{
				Left:  float64(s.Started.Sub(begin)) / float64(whole),
				Width: float64(length(s)) / float64(whole),
				Kind:  kindOf(s), Title: fmt.Sprintf("%s: %s, from %s", title(s), human(length(s)), human(s.Started.Sub(begin))),
			})
		}
		if len(row.Bars) > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func length(s report.Step) time.Duration {
	return time.Duration(float64(s.Seconds) * float64(time.Second))
}

func title(s report.Step) string {
	if s.Waiting {
		return "waiting for " + s.Name
	}
	return s.Name
}

func kindOf(s report.Step) string {
	switch {
	case s.Waiting:
		return "waiting"
	case s.Name == "build" || s.Name == "rebuild":
		return "build"
	case strings.HasPrefix(s.Name, "gate "):
		return "gate"
	}
	return "other"
}
