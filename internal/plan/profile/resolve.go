package profile

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
)

// An Environment is the result of a profile for one combination, with the user's
// settings. Lists have the order of the profile, followed by the user's settings.
type Environment struct {
	Schema    int               `json:"schema" jsonschema:"description=number of this format; a field may be added without a new number"`
	Profile   string            `json:"profile"`
	Axes      map[string]string `json:"axes" jsonschema:"description=the combination"`
	Chosen    []string          `json:"chosen" jsonschema:"description=axes that the command line left open"`
	Variables []Value           `json:"variables" jsonschema:"description=of the environment"`
	Options   []Value           `json:"options" jsonschema:"description=of the program; their names begin with dashes"`
	Notes     []Said            `json:"notes" jsonschema:"description=what no setting can do"`
}

// schemaNumber is the version of the format of [Environment].
const schemaNumber = 1

// A Value is one setting of an environment. A setting added by the user has no reason.
type Value struct {
	Name    string            `json:"name"`
	Value   string            `json:"value"`
	Asked   bool              `json:"asked" jsonschema:"description=the user has asked for it"`
	When    map[string]string `json:"when,omitempty" jsonschema:"description=constraints by axis; where it holds"`
	Where   string            `json:"where,omitempty" jsonschema:"description=where it has to stand to have an effect"`
	Because string            `json:"because,omitempty"`
	Source  string            `json:"source,omitempty" jsonschema:"format=uri"`
	Known   Known             `json:"known,omitempty" jsonschema:"enum=source,enum=documented,enum=reported,enum=unconfirmed,description=how the reason is known"`

	replaceable bool
}

// Said is a note with its source.
type Said struct {
	Text   string `json:"text"`
	Source string `json:"source" jsonschema:"format=uri"`
}

// Resolve returns the environment of the one combination selected by the filter, with
// the user's settings. Errors have class [diag.Usage]: unknown values, no combination
// or more than one, and every contradiction with the settings involved.
func (p *Profile) Resolve(filter matrix.Filter, asked []Asked) (Environment, error) {
	cell, notes, err := p.point(filter)
	if err != nil {
		return Environment{}, err
	}
	return p.at(cell, notes, asked)
}

// All returns the environments of every compatible combination selected by the filter,
// for tests of a profile.
func (p *Profile) All(filter matrix.Filter) ([]Environment, error) {
	cells, _, err := matrix.Expand(p.matrix(false), filter)
	errs := []error{err}
	var all []Environment
	for _, cell := range cells {
		e, err := p.at(cell, nil, nil)
		all, errs = append(all, e), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// at returns the environment of a combination.
func (p *Profile) at(cell matrix.Cell, notes []Said, asked []Asked) (Environment, error) {
	set, err := p.settings(cell.Axes)
	if err != nil {
		return Environment{}, err
	}
	set, err = add(set, asked)
	if err := errors.Join(err, p.contradicted(cell.Axes, set)); err != nil {
		return Environment{}, err
	}
	e := Environment{
		Schema: schemaNumber, Profile: p.Name, Axes: cell.Axes, Chosen: append([]string{}, cell.Chosen...),
		Variables: []Value{}, Options: []Value{}, Notes: append([]Said{}, notes...),
	}
	for _, n := range p.Notes {
		if n.When.Holds(cell.Axes) {
			e.Notes = append(e.Notes, Said{n.Text, n.Source})
		}
	}
	for _, v := range set {
		if strings.HasPrefix(v.Name, "-") {
			e.Options = append(e.Options, v)
		} else {
			e.Variables = append(e.Variables, v)
		}
	}
	return e, nil
}

// point chooses the combination as plan chooses a cell. It prefers values released
// together to other compatible ones.
func (p *Profile) point(filter matrix.Filter) (matrix.Cell, []Said, error) {
	filter, notes := p.coarsened(filter)
	cells, excluded, err := matrix.Expand(p.matrix(true), filter)
	if err != nil && p.ReleasedWith != nil {
		notes = append(notes, Said{p.ReleasedWith.Because, p.ReleasedWith.Source})
		cells, excluded, err = matrix.Expand(p.matrix(false), filter)
	}
	if len(cells) == 0 && len(excluded) > 0 {
		return matrix.Cell{}, nil, impossible(excluded)
	}
	if err != nil {
		return matrix.Cell{}, nil, err
	}
	if len(cells) > 1 {
		return matrix.Cell{}, nil, diag.Errorf(diag.Usage, "a profile needs one combination, and the flags select %d", len(cells)).
			WithHint("give each axis one value: %s, or %s", matrix.Words(cells[0].Axes), matrix.Words(cells[1].Axes))
	}
	return cells[0], notes, nil
}

// coarsened replaces 6.1.3 by 6.1 for an axis whose values serve finer releases, with a
// note for each.
func (p *Profile) coarsened(filter matrix.Filter) (matrix.Filter, []Said) {
	filter = maps.Clone(filter)
	var notes []Said
	for _, axis := range p.Axes {
		text := filter[axis.Name]
		if value, ok := axis.Coarser(text); ok {
			filter[axis.Name] = value
			notes = append(notes, Said{fmt.Sprintf("%s %s is read as %s: %s", axis.Name, text, value, axis.Finer.Because), axis.Finer.Source})
		}
	}
	return filter, notes
}

// impossible returns an error with the reason of each excluded combination.
func impossible(excluded []matrix.Exclusion) error {
	var errs []error
	for _, e := range excluded {
		err := diag.Errorf(diag.Usage, "%s: not compatible: %s (%s)", e, e.Because, e.Source)
		if len(e.Instead) > 0 {
			err = err.WithHint("compatible: %s", strings.Join(e.Instead, "; "))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// matrix returns the axes and rules of the profile as a recipe. With together it allows
// only values that were released together. The id contains the values of all axes, so it
// is unique.
func (p *Profile) matrix(together bool) *recipe.Recipe {
	id := p.Name + "-{{" + strings.Join(p.AxisNames(), "}}-{{") + "}}"
	r := &recipe.Recipe{Name: p.Name, ID: id, Axes: p.Axes, Compatible: slices.Clone(p.Compatible)}
	if with := p.ReleasedWith; together && with != nil {
		r.Compatible = append(r.Compatible, recipe.Rule{OneOf: with.Rows, Because: with.Because, Source: with.Source})
	}
	return r
}

// settings returns the profile's settings for a combination. Two settings of the same
// name are an error of the profile.
func (p *Profile) settings(axes map[string]string) ([]Value, error) {
	var set []Value
	var errs []error
	for i, s := range p.Settings {
		if !s.When.Holds(axes) {
			continue
		}
		if j := find(set, s.name()); j >= 0 {
			errs = append(errs, diag.At(p.index.At(fmt.Sprintf("settings[%d]", i)), "two settings for %s where %s", s.name(), matrix.Words(axes)))
			continue
		}
		set = append(set, Value{s.name(), s.Value, false, s.When, s.Where, s.Because, s.Source, s.Known, s.Replaceable})
	}
	return set, errors.Join(errs...)
}

// add returns the settings with those of the user added. A user's value that differs
// from the profile's is an error, unless the setting is replaceable.
func add(set []Value, asked []Asked) ([]Value, error) {
	set = slices.Clone(set)
	var errs []error
	for _, a := range asked {
		i := find(set, a.Name)
		if i < 0 {
			set = append(set, Value{Name: a.Name, Value: a.Value, Asked: true})
			continue
		}
		switch have := set[i]; {
		case have.Value == a.Value:
			set[i].Asked = true
		case have.Asked:
			errs = append(errs, diag.Errorf(diag.Usage, "%s and %s are both given", a, written(have.Name, have.Value)))
		case have.replaceable:
			set[i] = Value{Name: a.Name, Value: a.Value, Asked: true}
		default:
			set[i] = Value{Name: a.Name, Value: a.Value, Asked: true} // the new value may cause further contradictions
			errs = append(errs, diag.Errorf(diag.Usage, "%s (given) contradicts %s (profile): %s (%s)",
				a, written(have.Name, have.Value), have.Because, have.Source).WithHint("leave it out, or choose another combination"))
		}
	}
	return set, errors.Join(errs...)
}

func find(set []Value, name string) int {
	return slices.IndexFunc(set, func(v Value) bool { return v.Name == name })
}

// contradicted returns an error for every contradiction among the settings.
func (p *Profile) contradicted(axes map[string]string, set []Value) error {
	var errs []error
	for _, c := range p.Contradictions {
		if involved := c.involved(set); c.When.Holds(axes) && len(involved) > 0 {
			errs = append(errs, c.problem(axes, involved))
		}
	}
	return errors.Join(errs...)
}

// involved returns the contradicting settings, or nil if there is no contradiction.
func (c Contradiction) involved(set []Value) []Value {
	var involved []Value
	for _, name := range slices.Sorted(maps.Keys(c.Has)) {
		i := find(set, name)
		if i < 0 {
			return nil
		}
		if ok, err := path.Match(c.Has[name], set[i].Value); err != nil || !ok {
			return nil // loading rejects invalid patterns
		}
		involved = append(involved, set[i])
	}
	if len(c.Differ) > 0 {
		first := find(set, c.Differ[0])
		if first < 0 || !slices.ContainsFunc(involved, func(v Value) bool { return slices.Contains(c.Differ, v.Name) && v.Value != set[first].Value }) {
			return nil
		}
	}
	if slices.ContainsFunc(c.Lacks, func(name string) bool { return find(set, name) >= 0 }) {
		return nil
	}
	return involved
}

// problem returns an error with the settings involved.
func (c Contradiction) problem(axes map[string]string, involved []Value) error {
	var parts []string
	for _, v := range involved {
		by := "profile"
		if v.Asked {
			by = "given"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", written(v.Name, v.Value), by))
	}
	point := map[string]string{}
	for name := range c.When {
		point[name] = axes[name]
	}
	with := matrix.Words(point)
	text := strings.Join(parts, " and ")
	switch {
	case with != "" && len(parts) == 1:
		text += " contradicts " + with
	case with != "":
		text += " contradict " + with
	case len(parts) > 1:
		text += " contradict each other"
	}
	return diag.Errorf(diag.Usage, "%s: %s (%s)", text, c.Because, c.Source).WithHint("%s", c.Instead)
}
