package reportpage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/view/report"
)

// maxMatrix limits the size of the --matrix file.
const maxMatrix = 16 << 20

// A MergeRequest names the runs to merge.
type MergeRequest struct {
	Dirs   []string
	Matrix string // file of the required cells; "" requires none
	Out    string // directory of the result; "" writes nothing
}

// Merge joins the runs and writes the result. It returns the same error as one run of
// all their cells. The report is empty if the runs cannot be joined. With a matrix, a
// directory without a run is what a killed job leaves: its cells were not built.
func Merge(r MergeRequest) (report.Run, error) {
	expected, err := expectedCells(r.Matrix)
	errs := []error{err}
	var parts []report.Part
	for _, dir := range r.Dirs {
		part, err := report.Open(dir)
		if r.Matrix != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		parts, errs = append(parts, part), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return report.Run{}, err
	}
	merged, err := report.Merge(parts, expected)
	if err == nil && r.Out != "" {
		err = writeMerged(r, merged)
	}
	if err != nil {
		return report.Run{}, err
	}
	return merged, report.Err(merged)
}

func writeMerged(r MergeRequest, merged report.Run) error {
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return diag.Errorf(diag.Usage, "--out: %w", err)
	}
	if err := report.Write(filepath.Join(r.Out, "run.json"), merged); err != nil {
		return err
	}
	return WriteFiles(r.Out, merged, Options{Logs: below(r.Dirs)})
}

// below is a file system of several directories. It uses the names of [report.Open].
// Symbolic links cannot leave a directory, because runs come from untrusted places.
type below []string

// Open implements [fs.FS].
func (dirs below) Open(name string) (fs.File, error) {
	for _, dir := range dirs {
		inside, err := filepath.Rel(dir, name)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.Open(inside)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// expectedCells reads the output of builder matrix in the format json or github.
func expectedCells(file string) ([]report.Cell, error) {
	if file == "" {
		return nil, nil
	}
	cells, err := readMatrix(file)
	if err == nil && slices.ContainsFunc(cells, func(c report.Cell) bool { return c.ID == "" }) {
		err = fmt.Errorf("%s: a cell has no id", file)
	}
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--matrix: %w", err).WithHint("write it with builder matrix, --format json or github")
	}
	var expected []report.Cell
	for _, c := range cells {
		expected = append(expected, report.Cell{ID: c.ID, Recipe: c.Recipe, Axes: c.Axes})
	}
	return expected, nil
}

// readMatrix reads a list of cells, either at the top level or below include. A cell of
// a matrix has id, recipe and axes.
func readMatrix(file string) ([]report.Cell, error) {
	data, err := regular.ReadFollowed(file, maxMatrix)
	if err != nil {
		return nil, err
	}
	var cells []report.Cell
	if json.Unmarshal(data, &cells) == nil {
		return cells, nil
	}
	var github struct {
		Include []report.Cell `json:"include"`
	}
	if err := json.Unmarshal(data, &github); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if github.Include == nil {
		return nil, fmt.Errorf("%s: the file has no cells", file)
	}
	return github.Include, nil
}
