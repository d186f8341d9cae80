package reportpage

import (
	"cmp"
	"slices"
	"strings"
)

// grid is the matrix of cells. The axis with the most values, at most maxAcross, runs
// across. The others run down.
type grid struct {
	Across axis
	Down   []string            // names of the axes running down
	Rows   map[string][][]cell // by the values of these axes: for each value across, usually one cell
}

// maxAcross bounds the columns of the grid, so that it fits on the page.
const maxAcross = 12

// newGrid arranges cells in a grid. It returns an empty grid unless two axes vary.
func newGrid(axes []axis, cells []cell) grid {
	short := slices.DeleteFunc(slices.Clone(axes), func(a axis) bool { return len(a.Values) > maxAcross })
	if len(axes) < 2 || len(short) == 0 {
		return grid{}
	}
	g := grid{
		Across: slices.MaxFunc(short, func(a, b axis) int { return cmp.Compare(len(a.Values), len(b.Values)) }),
		Rows:   map[string][][]cell{},
	}
	for _, a := range axes {
		if a.Name != g.Across.Name {
			g.Down = append(g.Down, a.Name)
		}
	}
	for _, c := range cells {
		var values []string
		for _, name := range g.Down {
			values = append(values, c.Axes[name])
		}
		row := strings.Join(values, " ")
		if g.Rows[row] == nil {
			g.Rows[row] = make([][]cell, len(g.Across.Values))
		}
		if at := slices.Index(g.Across.Values, c.Axes[g.Across.Name]); at >= 0 {
			g.Rows[row][at] = append(g.Rows[row][at], c)
		}
	}
	return g
}
