package ci

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/plan/catalogue"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// A MatrixRequest selects the cells for jobs.
type MatrixRequest struct {
	Recipes  []*recipe.Recipe
	Filter   matrix.Filter
	All      bool // leave every unnamed axis open
	Condense bool // keep a few representative cells
}

// Jobs returns the jobs of the chosen cells of all recipes, before they are split into
// shards. It notes requested values without a cell.
func Jobs(cat catalogue.Catalogue, r MatrixRequest, note func(string, ...any)) ([]Job, error) {
	jobs := []Job{}
	for _, of := range r.Recipes {
		cells, _, err := matrix.Expand(of, OpenAxes(of, r.Filter, r.All))
		if err != nil {
			return nil, err
		}
		for _, p := range Absent(of, r.Filter, cells) {
			note("no cell has %s %s: %s prints the reason", p.Axis, p.Value, cat.Commands(askWhy(of, r.Filter, p)))
		}
		if r.Condense {
			if cells, err = CondenseCells(cat, cells, nil); err != nil {
				return nil, err
			}
		}
		for _, cell := range cells {
			job, err := NewJob(cell)
			if err != nil {
				return nil, err
			}
			if cat.Site != "" {
				job.Flags = slices.Insert(slices.Clone(job.Flags), 1, "--recipes", cat.Site)
			}
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// askWhy returns the command that plans a value together with the other named axes.
func askWhy(of *recipe.Recipe, filter matrix.Filter, p Pair) string {
	args := []string{"builder", "plan", of.Name}
	for _, axis := range of.AxisNames() {
		switch value, named := filter[axis]; {
		case axis == p.Axis:
			args = append(args, "--"+axis, p.Value)
		case named:
			args = append(args, "--"+axis, value)
		}
	}
	return "`" + shell.Line(args...) + "`"
}

// OpenAxes adds every missing axis to a filter, if all is set or the filter is empty.
func OpenAxes(r *recipe.Recipe, filter matrix.Filter, all bool) matrix.Filter {
	if len(filter) > 0 && !all {
		return filter
	}
	opened := matrix.Everything(r)
	maps.Copy(opened, filter)
	return opened
}

// CondenseCells keeps a few representative cells of one recipe, as [Condense] does.
func CondenseCells(cat catalogue.Catalogue, cells []matrix.Cell, proven map[string]bool) ([]matrix.Cell, error) {
	points, err := Points(cat, cells)
	if err != nil {
		return nil, err
	}
	few := Condense(points, cat.Patches[cells[0].Recipe.Name], proven)
	kept := make([]matrix.Cell, len(few))
	for i, p := range few {
		kept[i] = p.Cell
	}
	return kept, nil
}

// Points adds the facts stated by their images to cells.
func Points(cat catalogue.Catalogue, cells []matrix.Cell) ([]Point, error) {
	points := make([]Point, len(cells))
	for i, cell := range cells {
		facts, err := lock.Facts(cell, cat.LockInputs())
		if err != nil {
			return nil, fmt.Errorf("condensing the matrix of %s: %w", cell.Recipe.Name, err)
		}
		points[i] = Point{Cell: cell, Facts: facts}
	}
	return points, nil
}

// GitHubJobs is the maximum number of jobs in one matrix of GitHub Actions.
const GitHubJobs = 256

// githubJob is an item of a GitHub Actions matrix. All values are strings.
type githubJob struct {
	ID       string `json:"id"`
	Recipe   string `json:"recipe"`
	Args     string `json:"args"`
	Artifact string `json:"artifact"`
}

// GitHub returns part of the jobs as a GitHub Actions matrix. It fails if part has more
// than [GitHubJobs] jobs.
func GitHub(jobs, part []Job) (any, error) {
	if len(part) > GitHubJobs {
		n := len(jobs)/200 + 1 // 200 jobs on average are less than the limit in every shard
		return nil, diag.Errorf(diag.Usage, "%d jobs are more than GitHub's limit of %d for one matrix", len(part), GitHubJobs).
			WithHint("split all %d jobs into %d matrices with --shard 1/%d to --shard %d/%d, or use --condense", len(jobs), n, n, n, n)
	}
	include := make([]githubJob, len(part))
	for i, j := range part {
		include[i] = githubJob{j.ID, j.Recipe, shell.Line(j.Flags...), j.Artifact()}
	}
	return map[string]any{"include": include}, nil
}

// A Shard is one of Count parts of a matrix. Index starts at 1.
type Shard struct{ Index, Count int }

// ParseShard parses i/n.
func ParseShard(text string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	i, err1 := strconv.ParseUint(index, 10, 31)
	n, err2 := strconv.ParseUint(count, 10, 31)
	if errors.Join(err1, err2) != nil {
		return Shard{}, fmt.Errorf("%q is not a shard such as 1/3", text)
	}
	if i < 1 || i > n {
		return Shard{}, fmt.Errorf("shard %d of %d does not exist", i, n)
	}
	return Shard{Index: int(i), Count: int(n)}, nil
}

// Holds reports whether the cell with the given id is in the shard: the first 8 bytes of
// the id's sha256 determine it.
func (s Shard) Holds(id string) bool {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])%uint64(s.Count) == uint64(s.Index-1)
}
