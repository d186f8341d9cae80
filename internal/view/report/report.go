// Package report records the results of a run. run.json is the authoritative record. It
// is replaced atomically after every cell, so that a killed run leaves a complete and
// correct file. All other output, such as the table at the end, is derived from it.
package report

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/view/term"
)

// Schema is the version of the format of run.json. Fields may be added without a new
// version.
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

// Engine describes the engine that built the cells.
type Engine struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
	Address string `json:"address"`
}

// Cell is the result of one cell. Writing a cell sets its status to [StatusOf].
type Cell struct {
	ID        string              `json:"id"`
	Key       string              `json:"key"`
	Recipe    string              `json:"recipe"`
	Axes      map[string]string   `json:"axes"`
	Recipes   string              `json:"recipes,omitempty"` // directory of --recipes, as given
	Set       []string            `json:"set,omitempty"`     // values of --set, without passwords
	Status    Status              `json:"status"`
	From      From                `json:"from,omitempty"`
	Engine    string              `json:"engine,omitempty"` // address of the engine that built it
	Taken     Seconds             `json:"taken,omitempty"`  // time to take a stored or published result
	Steps     []Step              `json:"steps"`
	Artifacts []artifact.Artifact `json:"artifacts"`
	Verdicts  []verdict.Verdict   `json:"verdicts"`
	Signers   []string            `json:"signers,omitempty"`  // ids of the trusted keys that signed statements about it
	NotAsked  []string            `json:"notAsked,omitempty"` // what no verdict says, and after a colon the command that asks
	Error     *CellError          `json:"error,omitempty"`
}

// Seconds returns the time of the cell in this run: the sum of its steps, including
// gates. For a stored or published result it is the
// time to take the result, because its steps ran earlier.
func (c Cell) Seconds() (sum Seconds) {
	if c.From != Build && c.Taken > 0 {
		return c.Taken
	}
	for _, s := range c.Steps {
		sum += s.Seconds
	}
	return sum
}

// Status is the overall result of a cell.
type Status string

// The states of a cell. Skipped is a cell without a result, because the run did not
// reach it or was killed before.
const (
	Errored     Status = "error"        // an error ended it without a result
	Fail        Status = "fail"         // a gate failed
	NotMeasured Status = "not-measured" // a gate did not run, or there was none
	Pass        Status = "pass"
	Skipped     Status = "skipped"
)

// From is the origin of a cell's artifacts.
type From string

// The origins of an artifact.
const (
	Build    From = "build"
	Store    From = "store"
	Registry From = "registry" // published by a trusted key
)

// Step is a timed step of a cell. Log is the path of its log. Failed marks a failed step or a refusing gate.
type Step struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started,omitzero"`
	Seconds Seconds   `json:"seconds"`
	Cached  bool      `json:"cached"`
	Failed  bool      `json:"failed,omitempty"`
	Log     string    `json:"log"`
}

// CellError is the error of a cell without a result. Code is the name of an exit code.
// Cause is the beginning of what the log says about a failed build step, such as the first
// error of a compiler. Shell is the command that opens a shell in such a step.
type CellError struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint"`
	Cause   []string `json:"cause,omitempty"`
	Shell   string   `json:"shell,omitempty"`
}

// Seconds is a duration. run.json holds it rounded to milliseconds.
type Seconds float64

// Duration returns the seconds as a duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// String formats the seconds for people.
func (s Seconds) String() string { return term.Duration(s.Duration()) }

// MarshalJSON writes at most three decimals.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, rounded(float64(s)), 'f', -1, 64), nil
}

func rounded(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

// StatusOf derives the status of a cell: error takes precedence over fail, fail over
// not-measured, and not-measured over pass. A cell with a result and no verdicts is not
// measured; it never passes.
func StatusOf(c Cell) Status {
	failed := func(v verdict.Verdict) bool { return v.Status == verdict.Fail }
	switch {
	case c.Error != nil:
		return Errored
	case len(c.Verdicts) == 0 && len(c.Artifacts) == 0:
		return Skipped
	case slices.ContainsFunc(c.Verdicts, failed):
		return Fail
	case len(c.Verdicts) == 0 || slices.ContainsFunc(c.Verdicts, verdict.Verdict.Refuses):
		return NotMeasured
	}
	return Pass
}

// settled returns the cell in the form to write: with its status, lists instead of
// null, and copies of everything the caller could change.
func settled(c Cell) Cell {
	c.Status = StatusOf(c)
	c.Axes = maps.Collect(maps.All(c.Axes)) // never nil
	c.Steps = list(c.Steps)
	c.Artifacts = list(c.Artifacts)
	c.Verdicts = list(c.Verdicts)
	for i := range c.Verdicts {
		c.Verdicts[i].Seconds = rounded(c.Verdicts[i].Seconds)
	}
	if c.Error != nil {
		e := *c.Error
		c.Error = &e
	}
	return c
}

// list copies s. The copy of nil is an empty list.
func list[T any](s []T) []T { return append([]T{}, s...) }
