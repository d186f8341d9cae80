package reportpage

import (
	"maps"
	"slices"

	"builder/internal/view/report"
)

// engine is one of several engines of a run.
type engine struct {
	Address string
	N       int // cells
}

// EngineAxis returns the index of the engine in the values of a cell, after its axes
// and its status.
func (v view) EngineAxis() int { return len(v.Axes) + 1 }

// newEngines lists the engines that built cells, by address. It returns none for a
// single engine, which the head of the page names.
func newEngines(cells []report.Cell) []engine {
	built := map[string]int{}
	for _, c := range cells {
		if c.Engine != "" {
			built[c.Engine]++
		}
	}
	if len(built) < 2 {
		return nil
	}
	var all []engine
	for _, address := range slices.Sorted(maps.Keys(built)) {
		all = append(all, engine{address, built[address]})
	}
	return all
}
