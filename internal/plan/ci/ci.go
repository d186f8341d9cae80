// Package ci turns cells into jobs of a continuous integration service: all cells, a
// shard of them, or a condensed matrix. Package matrix determines the cells. [GitHub]
// returns jobs as a matrix of GitHub Actions.
//
// # Shards
//
// The sha256 of a cell's id, modulo the number of shards, determines its [Shard]. Each
// cell is in exactly one shard, and stays there when other cells are added or removed.
//
// # Condensed matrix
//
// [Condense] selects few cells to represent all. Of the values that occur in some
// cell, it keeps
//
//   - of each axis the oldest and the newest version, and every word;
//   - of each constraint in a compatibility rule, a variant or a patch (its when
//     and merged) the values on either side of its boundaries: sorted by version,
//     two neighbours of which it allows one and refuses the other.
//
// A fact of the images named by a patch, such as the compiler's release, counts as an
// axis.
//
// The choice of cells is greedy. Each round takes the cell with the most values not yet
// covered. Ties go to the cell the recipe prefers (the lowest sum of positions of its
// values in their axes), then to the first id. A later choice can make an earlier one
// redundant, so the last pass removes every cell whose values are all covered by
// others. The result is small, but not always the smallest: finding that is a hard
// problem, and the gain would be negligible. The result depends only on cells, recipe
// and patches, not on their order.
package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// A Job is one cell as a CI job.
type Job struct {
	ID     string            `json:"id"`
	Recipe string            `json:"recipe"`
	Axes   map[string]string `json:"axes"`
	// Flags are arguments of `builder run` that select this cell alone: the recipe, and
	// a value for each axis.
	Flags []string `json:"flags"`
}

// NewJob returns the job of a cell. A value that looks like other syntax of its flag, such
// as one with a comma, is an error.
func NewJob(c matrix.Cell) (Job, error) {
	flags := []string{c.Recipe.Name}
	for _, axis := range c.Recipe.Axes {
		value := c.Axes[axis.Name]
		if got, err := version.Select(value, axis.Values); err != nil || len(got) != 1 || got[0] != value {
			return Job{}, diag.Errorf(diag.Usage, "recipe %s: no flag selects only the value %q of %s", c.Recipe.Name, value, axis.Name).
				WithHint("rename the value: all, commas and comparisons have a meaning on the command line")
		}
		flags = append(flags, "--"+axis.Name, value)
	}
	return Job{ID: c.ID, Recipe: c.Recipe.Name, Axes: c.Axes, Flags: flags}, nil
}

// A Pair is a value of an axis, or of a fact that counts as an axis.
type Pair struct{ Axis, Value string }

// Absent returns the values selected by a filter but present in none of the cells, in
// the order of the recipe.
func Absent(r *recipe.Recipe, filter matrix.Filter, cells []matrix.Cell) []Pair {
	var absent []Pair
	for _, axis := range r.Axes {
		text, named := filter[axis.Name]
		if !named {
			continue
		}
		had := map[string]bool{}
		for _, c := range cells {
			had[c.Axes[axis.Name]] = true
		}
		values, _ := version.Select(text, axis.Values) // no error: the cells were selected with the same text
		for _, value := range values {
			if !had[value] {
				absent = append(absent, Pair{axis.Name, value})
			}
		}
	}
	return absent
}

// Artifact returns a name for the results of the job that is valid as a file name, an
// artifact name and a cache key: an id has letters, digits and . _ + -, of which + is
// replaced. It ends in part of the id's digest, so ids that differ only in that stay
// distinct.
func (j Job) Artifact() string {
	sum := sha256.Sum256([]byte(j.Recipe + "\n" + j.ID))
	return strings.ReplaceAll(j.ID, "+", "-") + "-" + hex.EncodeToString(sum[:4])
}
