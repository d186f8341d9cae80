// Package report writes down what a run did. run.json is the truth: it is
// replaced as a whole after every cell, so that a run that is killed leaves a
// file that is complete and says only what happened. Everything else, such as
// the table at the end, is a view of it.
package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/machine/curve"
)

// Schema is the number of the format of run.json. A field may be added without a
// new one.
const Schema = 1

// Run is one invocation of the tool.
type Run struct {
	Schema   int       `json:"schema"`
	Builder  string    `json:"builder"` // version of the tool
	Engine   Engine    `json:"engine"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"` // absent if the run was killed
	Cells    []Cell    `json:"cells"`
}

// Engine is what built the cells.
type Engine struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Address string `json:"address"`
}

// Cell is what became of one cell. Its status is always that of [StatusOf]:
// writing a cell sets it, whatever stood there.
type Cell struct {
	ID        string              `json:"id"`
	Key       string              `json:"key"`
	Recipe    string              `json:"recipe"`
	Axes      map[string]string   `json:"axes"`
	Status    Status              `json:"status"`
	From      From                `json:"from,omitempty"`
	Engine    string              `json:"engine,omitempty"` // address of the one that built it
	Taken     Seconds             `json:"taken,omitempty"`  // what it took to take a stored or published result
	Steps     []Step              `json:"steps"`
	Artifacts []artifact.Artifact `json:"artifacts"`
	Verdicts  []Verdict           `json:"verdicts"`
	Error     *CellError          `json:"error,omitempty"`
}

// Seconds is the time that the cell took in this run: its steps together, of which
// each gate is one and waiting for other cells is none. The steps of a result that
// was taken from somewhere are those of another day.
func (c Cell) Seconds() Seconds {
	if c.From != Build && c.Taken > 0 {
		return c.Taken
	}
	return c.Built()
}

// Built is the time that the steps took together when the cell was built, now or
// earlier.
func (c Cell) Built() Seconds {
	var sum Seconds
	for _, s := range c.Steps {
		if !s.Waiting {
			sum += s.Seconds
		}
	}
	return sum
}

// Status is the one word about a cell.
type Status string

// The states of a cell, from bad to good; Skipped is a cell that has nothing to
// show, because its turn did not come or the run was killed before its end.
const (
	Errored     Status = "error"        // it has no result
	Fail        Status = "fail"         // a gate said no
	NotMeasured Status = "not-measured" // a gate did not look, or there was none
	Pass        Status = "pass"
	Skipped     Status = "skipped"
)

// From says where a cell's artifacts come from.
type From string

// The origins of an artifact.
const (
	Build    From = "build"
	Store    From = "store"
	Registry From = "registry"
)

// Step is a timed move of a cell's container; Log is the path of its log. A step
// that is Waiting moved nothing: others had what it needs, such as the memory. One
// that Failed ended with an error, or is a gate that refuses.
type Step struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started,omitzero"`
	Seconds Seconds   `json:"seconds"`
	Cached  bool      `json:"cached"`
	Waiting bool      `json:"waiting,omitempty"`
	Failed  bool      `json:"failed,omitempty"`
	Log     string    `json:"log"`
}

// Verdict is the answer of a gate. Measured are the figures of one that measures.
type Verdict struct {
	Gate     string       `json:"gate"`
	Status   string       `json:"status"`
	Evidence string       `json:"evidence"`
	Measured curve.Curves `json:"measured,omitempty"`
	Remedy   string       `json:"remedy"`
	Waiver   *Waiver      `json:"waiver,omitempty"`
	Seconds  Seconds      `json:"seconds"`
}

// Waiver is why a failure does not keep an artifact back, and until which day.
type Waiver struct {
	Because string `json:"because"`
	Issue   string `json:"issue"`
	Until   string `json:"until"`
}

// The statuses of a verdict; any other counts as not measured.
const (
	verdictPass   = "pass"
	verdictWaived = "waived"
	verdictFail   = "fail"
)

// Refuses reports whether the verdict keeps the cell from passing.
func (v Verdict) Refuses() bool { return v.Status != verdictPass && v.Status != verdictWaived }

// CellError is why a cell has no result. Code is the name of an exit code.
type CellError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// Seconds is a duration as it stands in run.json, where it is rounded to
// milliseconds.
type Seconds float64

// MarshalJSON writes at most three decimals.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, math.Round(float64(s)*1000)/1000, 'f', -1, 64), nil
}

// StatusOf derives the status of a cell: error before fail before not-measured
// before pass. A cell with a result that no gate looked at is not measured; it
// never passes by having no verdicts.
func StatusOf(c Cell) Status {
	failed := func(v Verdict) bool { return v.Status == verdictFail }
	switch {
	case c.Error != nil:
		return Errored
	case len(c.Verdicts) == 0 && len(c.Artifacts) == 0:
		return Skipped
	case slices.ContainsFunc(c.Verdicts, failed):
		return Fail
	case len(c.Verdicts) == 0 || slices.ContainsFunc(c.Verdicts, Verdict.Refuses):
		return NotMeasured
	}
	return Pass
}

// settled returns the cell as it is written: with its status, lists instead of
// null, and nothing that the caller could still change.
func settled(c Cell) Cell {
	c.Status = StatusOf(c)
	c.Axes = maps.Clone(c.Axes)
	if c.Axes == nil {
		c.Axes = map[string]string{}
	}
	c.Steps = list(c.Steps)
	c.Artifacts = list(c.Artifacts)
	c.Verdicts = list(c.Verdicts)
	if c.Error != nil {
		e := *c.Error
		c.Error = &e
	}
	return c
}

// list copies s; a missing list becomes an empty one.
func list[T any](s []T) []T { return append([]T{}, s...) }
