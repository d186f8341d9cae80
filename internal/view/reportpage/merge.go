package reportpage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/view/report"
)

// maxMatrix limits the size of the --matrix file.
const maxMatrix = 16 << 20

// A MergeRequest names the runs to merge.
type MergeRequest struct {
	Dirs    []string
	Matrix  string // file of the required cells; "" requires none
	Out     string // directory of the result; "" writes nothing
	Against string // directory of the run to compare the page with
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
	page := Options{Logs: below(r.Dirs)}
	if r.Against != "" {
		before, err := report.Open(r.Against)
		if err != nil {
			return diag.Errorf(diag.Usage, "--since: %w", err)
		}
		page.Before = &before.Run
	}
	return WriteFiles(r.Out, merged, page)
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
	problem := func(err error) error {
		return diag.Errorf(diag.Usage, "--matrix: %s: %w", file, err).WithHint("write it with builder matrix, --format json or github")
	}
	data, err := regular.ReadFollowed(file, maxMatrix)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "--matrix: %w", err).WithHint("write it with builder matrix, --format json or github")
	}
	cells, err := matrixCells(data)
	if err != nil {
		return nil, problem(err)
	}
	var expected []report.Cell
	for _, c := range cells {
		if c.ID == "" {
			return nil, problem(errors.New("a cell has no id"))
		}
		expected = append(expected, report.Cell{ID: c.ID, Recipe: c.Recipe, Axes: c.Axes})
	}
	return expected, nil
}

// matrixCells decodes a list of cells, either at the top level or below include. A cell
// of a matrix has id, recipe and axes.
func matrixCells(data []byte) ([]report.Cell, error) {
	var cells []report.Cell
	if err := json.Unmarshal(data, &cells); err == nil {
		return cells, nil
	}
	var github struct {
		Include *[]report.Cell `json:"include"`
	}
	if err := json.Unmarshal(data, &github); err != nil {
		return nil, err
	}
	if github.Include == nil {
		return nil, errors.New("the file has no cells")
	}
	return *github.Include, nil
}
