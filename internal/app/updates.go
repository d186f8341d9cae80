package app

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/app/catalogue"
	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// An UpdatesRequest asks what the upstreams of recipes released.
type UpdatesRequest struct {
	Recipes   []*recipe.Recipe
	OlderThan time.Duration // a release must be at least this old
	Now       time.Time
	OSV       string // file or directory of known weaknesses, or ""
	Propose   string // directory to write a proposal into, or ""
	Taken     catalogue.Taken
}

// Updates lists the releases that the catalogue lacks and the known weaknesses of its
// pins. The order is that of dependencies.
type Updates struct {
	Before   string     `json:"released-before"`
	New      []Update   `json:"new"`
	Unasked  []Unasked  `json:"unasked"` // upstreams that gave no answer
	Weak     []Weakness `json:"weaknesses"`
	Proposal *Proposal  `json:"proposal,omitempty"`
}

// An Update is a value that an axis lacks.
type Update struct {
	Recipe   string `json:"recipe"`
	Axis     string `json:"axis"`
	Value    string `json:"value"`
	From     string `json:"from"`
	Released string `json:"released,omitempty"`
	Cells    int    `json:"cells"` // cells of the recipe with the value
	// Because lists the rules without which there would be cells, if there are none.
	Because []string `json:"because,omitempty"`
	Dated   bool     `json:"-"` // the recipe states the date
}

// Unasked is an upstream that gave no answer.
type Unasked struct {
	Recipe string `json:"recipe"`
	Axis   string `json:"axis"`
	From   string `json:"from"`
	Why    string `json:"why"`
}

// AskUpdates asks every upstream that the recipes name, and writes the proposal.
func AskUpdates(ctx context.Context, s *Session, r UpdatesRequest) (Updates, error) {
	if s.Offline || s.Locked {
		return Updates{}, diag.Errorf(diag.Usage, "updates asks upstreams: --locked and --offline forbid just that")
	}
	if r.Propose != "" { // before an upstream is asked
		if err := sitePlace(r.Propose); err != nil {
			return Updates{}, err
		}
		if _, err := os.Lstat(filepath.Join(r.Propose, readme)); err == nil {
			return Updates{}, diag.Errorf(diag.Usage, "--propose: %s already has a proposal or a site", r.Propose).WithHint("move it away, or name another directory")
		}
	}
	before := r.Now.Add(-r.OlderThan)
	all := Updates{Before: before.UTC().Format(time.DateOnly), New: []Update{}, Unasked: []Unasked{}, Weak: []Weakness{}}
	var err error
	if r.OSV != "" {
		if all.Weak, err = s.weaknesses(r.OSV, r.Recipes); err != nil {
			return Updates{}, err
		}
	}
	w, err := s.open(ctx)
	if err != nil {
		return all, err
	}
	offered := map[string][]release{} // versions of recipes, for those that link them
	for _, of := range dependencyOrder(r.Recipes) {
		for _, u := range axesFirst(upstreams(of)) {
			found := offered[u.of]
			if u.of != "" {
				found = slices.Concat(versionsOf(r.Recipes, u.of), found)
			} else {
				if found, err = w.releases(ctx, u, before); err != nil {
					all.Unasked = append(all.Unasked, Unasked{of.Name, u.axis.Name, u.String(), err.Error()})
				}
			}
			if ctx.Err() != nil {
				w.close()
				return all, context.Cause(ctx)
			}
			for _, f := range found {
				if u.axis.Name == "version" {
					offered[of.Name] = append(offered[of.Name], f)
				}
				if newer(f.value, u.newest()) {
					all.New = append(all.New, s.update(u, f))
				}
			}
		}
	}
	w.close() // the proposal opens the store itself
	if r.Propose != "" {
		all.Proposal, err = s.propose(ctx, r, all)
	}
	return all, err
}

// versionsOf returns the versions of a recipe in the catalogue, oldest first.
func versionsOf(all []*recipe.Recipe, name string) (versions []release) {
	r, err := recipe.Find(all, name)
	if err != nil {
		return nil
	}
	axis, _ := r.Axis("version")
	for _, value := range axis.Values {
		versions = append(versions, release{value: value})
	}
	sortReleases(versions)
	return versions
}

// axesFirst puts what a recipe links before its own version.
func axesFirst(all []upstream) []upstream {
	slices.SortStableFunc(all, func(a, b upstream) int {
		return cmp.Compare(bit(a.axis.Name == "version"), bit(b.axis.Name == "version"))
	})
	return all
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// dependencyOrder puts a recipe after the recipes of its inputs.
func dependencyOrder(all []*recipe.Recipe) []*recipe.Recipe {
	var sorted []*recipe.Recipe
	placed := map[string]bool{}
	var place func(r *recipe.Recipe)
	place = func(r *recipe.Recipe) {
		if placed[r.Name] {
			return
		}
		placed[r.Name] = true
		for _, s := range r.Everywhere() {
			for _, in := range s.Inputs {
				if i := slices.IndexFunc(all, func(x *recipe.Recipe) bool { return x.Name == in.Recipe }); i >= 0 {
					place(all[i])
				}
			}
		}
		sorted = append(sorted, r)
	}
	for _, r := range all {
		place(r)
	}
	return sorted
}

// update says what the value would add to the matrix of its recipe.
func (s *Session) update(u upstream, f release) Update {
	n := Update{Recipe: u.recipe.Name, Axis: u.axis.Name, Value: f.value, From: u.String()}
	if !f.date.IsZero() {
		n.Released = f.date.UTC().Format(time.DateOnly)
	}
	date := dated(u, f)
	n.Dated = date != ""
	wide, err := u.recipe.With(u.axis.Name, f.value, date)
	if err != nil {
		n.Because = []string{err.Error()}
		return n
	}
	filter := matrix.Everything(wide)
	filter[u.axis.Name] = f.value
	cells, excluded, err := matrix.Expand(wide, filter)
	if err != nil {
		if n.Because = reasons(excluded, apart(wide, u.axis.Name, u.newest(), f.value)); len(excluded) == 0 {
			n.Because = []string{err.Error()}
		}
		return n
	}
	drafter := lock.NewDrafter(wide, s.Catalogue.LockInputs())
	for _, c := range cells {
		if _, err := drafter.Draft(c); err != nil {
			for _, e := range diag.All(err) {
				n.Because = append(n.Because, e.Error())
			}
			continue
		}
		n.Cells++
	}
	if slices.Sort(n.Because); n.Cells > 0 {
		n.Because = nil
	}
	n.Because = slices.Compact(n.Because)
	return n
}

// dated returns the date that the recipe states for a new version of its source.
func dated(u upstream, f release) string {
	if u.recipe.Source.Version == "{{"+u.axis.Name+"}}" && u.project == u.recipe.Source.Project && !f.date.IsZero() {
		return f.date.UTC().Format(time.DateOnly)
	}
	return ""
}

// apart returns the reasons of the rules that tell two values of an axis apart.
func apart(r *recipe.Recipe, axis, known, value string) map[string]bool {
	tell := map[string]bool{}
	for _, rule := range r.Compatible {
		for _, c := range append(rule.Rows(), rule.When) {
			truths, err := r.Truths(c)
			if err == nil && truths[axis][known] != truths[axis][value] {
				tell[rule.Because] = true
			}
		}
	}
	return tell
}

// reasons lists the reasons of exclusions, the most frequent first, three at most. If
// some of them are in most, it lists no others.
func reasons(excluded []matrix.Exclusion, most map[string]bool) []string {
	count, among := map[string]int{}, map[string]int{}
	for _, e := range excluded {
		if count[e.Because]++; most[e.Because] {
			among[e.Because]++
		}
	}
	if len(among) > 0 {
		count = among
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	return all[:min(len(all), 3)]
}

// ParseAge parses an age such as 7d or 36h.
func ParseAge(text string) (time.Duration, error) {
	fault := diag.Errorf(diag.Usage, "--older-than: %q is not an age such as 7d or 36h", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		d, err := time.ParseDuration(days + "h")
		if err != nil || d < 0 || d > 100*365*time.Hour {
			return 0, fault
		}
		return d * 24, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fault
	}
	return d, nil
}

// Fault returns an error if an upstream gave no answer.
func (u Updates) Fault() error {
	if len(u.Unasked) == 0 {
		return nil
	}
	return diag.Errorf(diag.Fetch, "%d upstreams gave no answer", len(u.Unasked)).
		WithHint("--set source.NAME=PATH names a local repository; uv's and pip's own configuration name the index")
}
