package reportpage

import (
	"slices"
	"strings"
)

// grid is the matrix of cells. The axis with the most values, at most maxAcross, runs
// across. The others run down.
type grid struct {
	Across axis
	Down   []string // names of the axes running down
	Rows   []gridRow
}

type gridRow struct {
	Label string
	Cells [][]cell // for each value across, usually one
}

// maxAcross bounds the columns of the grid, so that it fits on the page.
const maxAcross = 12

// newGrid arranges cells in a grid. It returns an empty grid unless two axes vary.
func newGrid(axes []axis, cells []cell) grid {
	across := -1
	for i, a := range axes {
		if len(a.Values) <= maxAcross && (across < 0 || len(a.Values) > len(axes[across].Values)) {
			across = i
		}
	}
	if across < 0 || len(axes) < 2 {
		return grid{}
	}
	g := grid{Across: axes[across]}
	for i, a := range axes {
		if i != across {
			g.Down = append(g.Down, a.Name)
		}
	}
	rows := map[string]int{}
	for _, c := range cells {
		label := strings.Join(slices.Delete(slices.Clone(c.Values), across, across+1), " ")
		at, known := rows[label]
		if !known {
			at = len(g.Rows)
			rows[label] = at
			g.Rows = append(g.Rows, gridRow{label, make([][]cell, len(g.Across.Values))})
		}
		column := slices.Index(g.Across.Values, c.Values[across])
		if column >= 0 {
			g.Rows[at].Cells[column] = append(g.Rows[at].Cells[column], c)
		}
	}
	slices.SortFunc(g.Rows, func(a, b gridRow) int { return strings.Compare(a.Label, b.Label) })
	return g
}
