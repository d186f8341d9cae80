// Package ci turns cells into the jobs of a build matrix of a continuous
// integration service: all of them, a part of them, or a few that stand for all.
// Which cells there are is said by internal/plan/matrix; [GitHub] and [GitLab] write jobs as
// their services read them.
//
// # A part of them
//
// A [Shard] holds the cells whose id's sha256 is its number modulo the number of
// shards. Each cell is in exactly one, and stays there when others come or go.
//
// # A few that stand for all
//
// [Condense] keeps, of the values that occur in some cell,
//
//   - of each axis the oldest and the newest version, and every word;
//   - of each constraint in a compatibility rule, a variant or a patch (its when
//     and merged) the values on either side of its boundaries: sorted by version,
//     two neighbours of which it allows one and refuses the other.
//
// A fact of the images that a patch names, the release of the compiler say,
// counts as an axis: its values occur in cells too.
//
// The cells that hold these values are chosen greedily: again and again the one
// that holds most values that no chosen cell holds yet; of equals the one that
// the recipe prefers most (the positions of its values, summed), then the first
// by id. Greed may make an early choice needless, so that at last every cell goes
// whose values the others hold. What remains is small, not always the smallest:
// that is a hard problem, and nobody would see the difference. It depends on
// cells, recipe and patches alone, not on the order of any of them.
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

// A Job is one cell as a job.
type Job struct {
	ID     string            `json:"id"`
	Recipe string            `json:"recipe"`
	Axes   map[string]string `json:"axes"`
	// Flags follow `builder run` to build this cell and no other: the recipe, and
	// a value for each axis.
	Flags []string `json:"flags"`
}

// NewJob makes the job of a cell.
func NewJob(c matrix.Cell) (Job, error) {
	flags := []string{c.Recipe.Name}
	for _, axis := range c.Recipe.Axes {
		text, err := exactly(axis, c.Axes[axis.Name])
		if err != nil {
			return Job{}, diag.Errorf(diag.Usage, "recipe %s: %w", c.Recipe.Name, err).
				WithHint("give the value another name: all, commas and comparisons mean something on a command line")
		}
		flags = append(flags, "--"+axis.Name, text)
	}
	return Job{ID: c.ID, Recipe: c.Recipe.Name, Axes: c.Axes, Flags: flags}, nil
}

// exactly returns what selects one value of an axis. A value may be called like
// something else that a flag takes: then a comparison says it.
func exactly(axis recipe.Axis, value string) (string, error) {
	for _, text := range []string{value, "=" + value} {
		if got, err := version.Select(text, axis.Values); err == nil && len(got) == 1 && got[0] == value {
			return text, nil
		}
	}
	return "", diag.Errorf(diag.Usage, "no flag selects the value %q of %s alone", value, axis.Name)
}

// A Pair is a value of an axis, or of a fact that counts as one.
type Pair struct{ Axis, Value string }

// Absent returns the values that a filter asks for and that none of its cells
// has, in the order of the recipe.
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
		values, _ := version.Select(text, axis.Values) // the cells were found with it
		for _, value := range values {
			if !had[value] {
				absent = append(absent, Pair{axis.Name, value})
			}
		}
	}
	return absent
}

// Artifact returns a name for what the job makes that is fit for a file, an
// artifact or a key of a cache anywhere: letters, digits, dots, dashes and
// underscores. It is the id with a part of its digest, which keeps apart what
// spelling no longer does.
func (j Job) Artifact() string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '-'
	}, j.ID)
	sum := sha256.Sum256([]byte(j.Recipe + "\n" + j.ID))
	return plain + "-" + hex.EncodeToString(sum[:4])
}
