// Package runlog lists the logs of a run by cell and step, finished and still growing.
// Package steplog reads and follows a single log.
package runlog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/build/steplog"
	"builder/internal/view/report"
)

// A Cell is one cell and the logs of its steps.
type Cell struct {
	Cell   string `json:"cell"`
	Status string `json:"status"` // status in run.json, or running
	Steps  []Log  `json:"steps"`
	Failed int    `json:"-"` // index of the first failed step, or -1
}

// A Log is the log of a step. Seconds is nil until the cell is done.
type Log struct {
	Step    string          `json:"step"`
	Verdict string          `json:"verdict"`
	Seconds *report.Seconds `json:"seconds,omitempty"`
	Bytes   *int64          `json:"bytes,omitempty"` // nil if there is no log
	Log     string          `json:"log"`             // path below the directory of the run
}

// Running is the status of an unfinished cell or step.
const Running = "running"

// Survey lists the logs of every cell of a run. For a cell without steps in run.json it
// looks at the log files.
func Survey(root *os.Root, run report.Run) []Cell {
	var all []Cell
	for _, c := range run.Cells {
		cell := Cell{Cell: c.ID, Status: string(report.StatusOf(c)), Steps: []Log{}, Failed: -1}
		for i, s := range c.Steps {
			if s.Failed && cell.Failed < 0 {
				cell.Failed = i
			}
			log := Log{Step: s.Name, Verdict: verdictOf(c, s), Seconds: new(s.Seconds), Log: s.Log}
			log.Bytes, _ = look(root, s.Log)
			cell.Steps = append(cell.Steps, log)
		}
		if len(c.Steps) == 0 {
			cell.Steps = unfinished(root, c.ID, run.Started)
			if slices.ContainsFunc(cell.Steps, Log.running) {
				cell.Status = Running
			}
		}
		all = append(all, cell)
	}
	return all
}

func (l Log) running() bool { return l.Verdict == Running }

// look returns the size of a log, nil if there is none, and whether its step still
// runs.
func look(root *os.Root, name string) (size *int64, running bool) {
	f, err := steplog.Open(root, name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false
	}
	bytes := info.Size()
	return &bytes, steplog.Running(f)
}

// unfinished returns the logs of an unfinished cell by time of the last write, running
// ones last. It ignores logs of earlier runs.
func unfinished(root *os.Root, id string, since time.Time) []Log {
	logs := []Log{}
	dir, err := root.Open(filepath.Join(id, steplog.Dir))
	if err != nil {
		return logs
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1) // unreadable entries are left out
	written := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		step, isLog := strings.CutSuffix(e.Name(), ".log")
		if err != nil || !isLog || info.ModTime().Before(since.Add(-time.Second)) { // allows for coarse clocks of file systems
			continue
		}
		log := Log{Step: step, Verdict: "ended", Log: filepath.Join(id, steplog.Dir, e.Name())}
		size, running := look(root, log.Log)
		if running {
			log.Verdict = Running
		}
		log.Bytes, written[step] = size, info.ModTime()
		logs = append(logs, log)
	}
	slices.SortFunc(logs, func(a, b Log) int {
		if a.running() != b.running() {
			if b.running() {
				return -1
			}
			return 1
		}
		return written[a.Step].Compare(written[b.Step])
	})
	return logs
}

// verdictOf returns one word for a step of a finished cell.
func verdictOf(c report.Cell, s report.Step) string {
	gate, isGate := strings.CutPrefix(s.Name, "gate ")
	for _, v := range c.Verdicts {
		if isGate && v.Gate == gate {
			return v.Status.String()
		}
	}
	switch {
	case s.Failed:
		return string(report.Errored)
	case s.Cached:
		return "cached"
	case s.Waiting:
		return "waited"
	}
	return "done"
}
