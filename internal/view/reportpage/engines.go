package reportpage

import (
	"maps"
	"slices"

	"builder/internal/view/report"
)

// engine is one of several that built the cells of a run.
type engine struct {
	Address string
	N       int // cells
}

// EngineAxis is the place of the engine among the values of a cell: behind its axes
// and its status.
func (v view) EngineAxis() int { return len(v.Axes) + 1 }

// newEngines lists the engines that built cells, by address; none where one engine
// built them all: the head of the page names it.
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
