package complete

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/app/syntax"
	"builder/internal/base/shell"
	"builder/internal/view/report"
)

// NameRecipes sets the names of recipes as the values of flags and operands that take a
// recipe, and adds the verbs to the operands of help and man.
func NameRecipes(tool *syntax.Verb, names []string) {
	for i, v := range tool.Verbs {
		for j, f := range v.Flags {
			if f.Names[0] == "recipe" {
				tool.Verbs[i].Flags[j].Takes = syntax.Takes{Words: names}
			}
		}
		switch v.Name {
		case "patch":
			for j := range v.Verbs {
				tool.Verbs[i].Verbs[j].Takes = syntax.Takes{Words: names}
			}
		case "completion":
			for j := range v.Verbs { // man
				for _, other := range tool.Verbs {
					tool.Verbs[i].Verbs[j].Takes.Words = append(tool.Verbs[i].Verbs[j].Takes.Words, other.Name)
				}
			}
		}
	}
}

// LastCells lists the cells below the output directory: first those of the last run,
// then the others.
func LastCells(dir string) Cells {
	cells := Cells{Out: dir}
	if last, err := report.Read(filepath.Join(dir, "run.json")); err == nil {
		for _, cell := range last.Cells {
			cells.IDs = append(cells.IDs, cell.ID)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return cells
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(cells.IDs, e.Name()) {
			cells.IDs = append(cells.IDs, e.Name())
		}
	}
	cells.IDs = slices.DeleteFunc(cells.IDs, func(id string) bool { return !shell.Plain(id) })
	return cells
}
