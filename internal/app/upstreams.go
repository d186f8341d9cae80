package app

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/input/git"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// An upstream is a place that releases the values of an axis, as a recipe names it.
type upstream struct {
	recipe *recipe.Recipe
	axis   recipe.Axis

	project    string // of the Python index
	repository string // whose tags are the values
	of         string // recipe whose versions are the values

	// before and after surround the value in a version of the project or in a tag. If
	// after ends with .*, the first numbers of a version are the value.
	before, after string
}

// A release is a value that an upstream offers.
type release struct {
	value string
	date  time.Time // zero if unknown
}

// String returns the place in words.
func (u upstream) String() string {
	value := u.before + "{{" + u.axis.Name + "}}" + u.after
	switch {
	case u.project != "":
		return u.project + "==" + value
	case u.repository != "":
		return "tag " + value + " of " + u.repository
	}
	return "recipe " + u.of
}

var (
	namedValue  = regexp.MustCompile(`^([^{}]*)\{\{\s*([a-z0-9-]+)\s*\}\}([^{}]*)$`)
	requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)==([^,;\s]+)$`)
)

// upstreams finds the places that a recipe names for its axes: the project or the tag
// of its source, requirements on an exact version, and inputs.
func upstreams(r *recipe.Recipe) []upstream {
	var all []upstream
	add := func(text string, place upstream) {
		m := namedValue.FindStringSubmatch(text)
		if m == nil {
			return
		}
		axis, ok := r.Axis(m[2])
		place.recipe, place.axis, place.before, place.after = r, axis, m[1], m[3]
		same := func(u upstream) bool {
			other := u
			other.project = place.project // the packages of one CUDA release are released together
			return u.axis.Name == axis.Name && other.String() == place.String() && (u.project == "") == (place.project == "")
		}
		if ok && !slices.ContainsFunc(all, same) {
			all = append(all, place)
		}
	}
	for _, s := range r.Everywhere() {
		for _, text := range slices.Concat(s.Requires.Build, s.Requires.Run) {
			if m := requirement.FindStringSubmatch(text); m != nil {
				add(m[2], upstream{project: m[1]})
			}
		}
		for _, in := range s.Inputs {
			add(in.Axes["version"], upstream{of: in.Recipe})
		}
	}
	for _, s := range r.Everywhere() {
		switch s.From.Kind {
		case recipe.Sdist, recipe.Wheel:
			if !strings.Contains(r.Source.Project, "{{") {
				add(r.Source.Version, upstream{project: r.Source.Project})
			}
		case recipe.Git:
			add(s.From.Tag, upstream{repository: s.From.Repository})
		}
	}
	return all
}

// newest returns the newest value of the axis, or "".
func (u upstream) newest() string {
	best := ""
	for _, value := range u.axis.Values {
		if newer(value, best) {
			best = value
		}
	}
	return best
}

// newestPython returns the newest CPython of a recipe. A release for older ones only
// gives no wheel for it.
func newestPython(r *recipe.Recipe) string {
	axis, _ := r.Axis("python")
	return cmp.Or(upstream{axis: axis}.newest(), "3.12")
}

// newer reports whether a is a version after b, or a version if b is "".
func newer(a, b string) bool {
	v, err := version.Parse(a)
	if err != nil || b == "" {
		return err == nil
	}
	w, err := version.Parse(b)
	return err == nil && version.Compare(v, w) > 0
}

// value returns the value of the axis in a version or a tag.
func (u upstream) value(text string) (string, bool) {
	if after, cut := strings.CutSuffix(u.after, ".*"); cut {
		numbers := strings.Split(text, ".")
		want := strings.Count(u.newest(), ".") + 1
		return strings.Join(numbers[:min(want, len(numbers))], "."), after == "" && u.before == ""
	}
	value, ok1 := strings.CutPrefix(text, u.before)
	value, ok2 := strings.CutSuffix(value, u.after)
	return value, ok1 && ok2
}

// releases asks the upstream for values newer than those of the axis, released before a
// time. It returns them oldest first.
func (w *workspace) releases(ctx context.Context, u upstream, before time.Time) ([]release, error) {
	var all []release
	newest := u.newest()
	add := func(text string, date func(value string) (time.Time, error)) error {
		value, ok := u.value(text)
		v, err := version.Parse(value)
		known := slices.ContainsFunc(all, func(r release) bool { return r.value == value })
		if !ok || err != nil || v.IsPrerelease() || known || !newer(value, newest) {
			return nil
		}
		made, err := date(value)
		if err == nil && !made.After(before) {
			all = append(all, release{value, made})
		}
		return err
	}
	switch {
	case newest == "":
		return nil, nil
	case u.project != "":
		uv, err := w.uv(ctx)
		if err != nil {
			return nil, err
		}
		upTo := func(text string) string {
			if value, ok := u.value(text); ok && strings.HasSuffix(u.after, ".*") {
				return value
			}
			return text
		}
		than := u.before + newest + strings.TrimSuffix(u.after, ".*")
		found, err := uv.Newer(ctx, w.scratch, u.project, than, newestPython(u.recipe), before, upTo)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			_ = add(f.Version, func(string) (time.Time, error) { return f.Uploaded, nil })
		}
	case u.repository != "":
		from, err := git.Source(u.repository, w.Places()[u.recipe.Source.Project])
		if err != nil {
			return nil, err
		}
		tags, err := git.Tags(ctx, from)
		if err != nil {
			return nil, err
		}
		for tag := range tags {
			err := add(tag, func(string) (time.Time, error) { return git.Made(ctx, w.scratch, from, tag) })
			if err != nil {
				return nil, fmt.Errorf("reading the date of tag %s: %w", tag, err)
			}
		}
	}
	sortReleases(all)
	return all, nil
}

// sortReleases puts the oldest version first.
func sortReleases(all []release) {
	slices.SortFunc(all, func(a, b release) int {
		v, _ := version.Parse(a.value) // a text that is no version comes first
		w, _ := version.Parse(b.value)
		return version.Compare(v, w)
	})
}
