package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/plan/recipe"
	"builder/internal/plan/version"
)

// Load reads every *.yaml of fsys, in the order of their names. Positions in error
// messages begin with dir. It returns the errors of all files together.
func Load(fsys fs.FS, dir string) ([]*Profile, error) {
	return decode.Folder(fsys, dir, Parse)
}

// Parse parses one profile. name is its path in error messages. The base name without
// .yaml must be the name of the profile. Errors have a position and class [diag.Usage].
func Parse(name string, data []byte) (*Profile, error) {
	var p Profile
	index, err := decode.YAML(name, data, &p)
	if err != nil {
		return nil, err
	}
	p.index = index
	c := checker{profile: &p}
	if want := strings.TrimSuffix(path.Base(name), ".yaml"); p.Name != want || !word.MatchString(p.Name) {
		c.problem("name", "the profile has the name %q, and its file %q", p.Name, want)
	}
	c.prose("summary", p.Summary)
	c.axes()
	c.rules()
	c.settings()
	c.notes()
	c.contradictions()
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &p, nil
}

var word = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// checker collects the problems of a profile as written.
type checker struct {
	profile *Profile
	errs    []error
}

func (c *checker) problem(at, format string, args ...any) {
	c.errs = append(c.errs, diag.At(c.profile.index.At("%s", at), format, args...))
}

// prose rejects texts unsuitable for the middle of a line.
func (c *checker) prose(at, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		c.problem(at, "%s is missing", at)
	case strings.HasSuffix(text, "."), strings.ContainsFunc(text, unicode.IsControl):
		c.problem(at, "%s must be one line without a full stop, because it is printed beside a value", at)
	}
}

func (c *checker) link(at, text string) {
	if !strings.HasPrefix(text, "https://") || strings.ContainsFunc(text, unsafeInLink) {
		c.problem(at, "%s is not an https link: %q", at, text)
	}
}

func unsafeInLink(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }

// axisValue matches a version or a word.
var axisValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

func (c *checker) axes() {
	if len(c.profile.Axes) == 0 {
		c.problem("axes", "axes is missing: write at least one")
	}
	seen := map[string]bool{}
	for i, a := range c.profile.Axes {
		at := fmt.Sprintf("axes[%d]", i)
		switch {
		case !word.MatchString(a.Name):
			c.problem(at+".name", "%q cannot be the name of an axis: an axis is a flag", a.Name)
		case seen[a.Name]:
			c.problem(at+".name", "axis %q occurs twice", a.Name)
		case len(a.Values) == 0:
			c.problem(at, "an axis needs at least one value")
		}
		c.prose(at+".about", a.About)
		if a.Finer != nil {
			c.prose(at+".finer.because", a.Finer.Because)
			c.link(at+".finer.source", a.Finer.Source)
		}
		seen[a.Name] = true
		for j, v := range a.Values {
			place := fmt.Sprintf("%s.values[%d]", at, j)
			switch {
			case !axisValue.MatchString(v) || v == "all":
				c.problem(place, "%q cannot be a value: write a version or a word; all means every value", v)
			case slices.Contains(a.Values[:j], v):
				c.problem(place, "value %q occurs twice", v)
			}
		}
	}
}

// condition rejects unknown axes and constraints that no value satisfies. They would
// silently never hold.
func (c *checker) condition(at string, cond recipe.Condition) {
	for _, name := range slices.Sorted(maps.Keys(cond)) {
		place := at + "." + name
		i := slices.IndexFunc(c.profile.Axes, func(a recipe.Axis) bool { return a.Name == name })
		constraint, err := version.ParseConstraint(cond[name])
		switch {
		case i < 0:
			c.errs = append(c.errs, diag.At(c.profile.index.At("%s", place), "unknown axis %q", name).
				WithHint("%s", diag.DidYouMean(name, c.profile.AxisNames())))
		case err != nil:
			c.problem(place, "%w", err)
		case strings.ContainsFunc(cond[name], unicode.IsControl):
			c.problem(place, "a constraint must be one line")
		case !slices.ContainsFunc(c.profile.Axes[i].Values, constraint.AllowsText):
			c.problem(place, "no value of %s is %s", name, cond[name])
		}
	}
}

// rules checks the compatibility rules.
func (c *checker) rules() {
	for i, r := range c.profile.Compatible {
		at := fmt.Sprintf("compatible[%d]", i)
		if (len(r.Needs) == 0) == (len(r.OneOf) == 0) {
			c.problem(at, "a rule must have either needs or one-of")
		}
		c.condition(at+".when", r.When)
		c.condition(at+".needs", r.Needs)
		for j, row := range r.OneOf {
			c.condition(fmt.Sprintf("%s.one-of[%d]", at, j), row)
		}
		c.prose(at+".because", r.Because)
		c.link(at+".source", r.Source)
	}
	if with := c.profile.ReleasedWith; with != nil {
		for i, row := range with.Rows {
			c.condition(fmt.Sprintf("released-with.rows[%d]", i), row)
		}
		if len(with.Rows) == 0 {
			c.problem("released-with", "released-with has no rows")
		}
		c.prose("released-with.because", with.Because)
		c.link("released-with.source", with.Source)
	}
}

func (c *checker) settings() {
	if len(c.profile.Settings) == 0 {
		c.problem("settings", "settings is missing: write at least one")
	}
	for i, s := range c.profile.Settings {
		at := fmt.Sprintf("settings[%d]", i)
		switch {
		case (s.Env == "") == (s.Option == ""):
			c.problem(at, "a setting must have either env or option")
		case s.Env != "" && !variable.MatchString(s.Env):
			c.problem(at+".env", "%q is not the name of a variable", s.Env)
		case s.Option != "" && !option.MatchString(s.Option):
			c.problem(at+".option", "%q is not an option such as --name", s.Option)
		case !isPlain(s.Value):
			c.problem(at+".value", "the value %q needs quotes, which are not supported", s.Value)
		}
		if !slices.Contains(knowns(), s.Known) {
			c.problem(at+".known", "known %q is not one of %q", s.Known, knowns())
		}
		if s.Where != "" {
			c.prose(at+".where", s.Where)
		}
		c.condition(at+".when", s.When)
		c.prose(at+".because", s.Because)
		c.link(at+".source", s.Source)
	}
}

func (c *checker) notes() {
	for i, n := range c.profile.Notes {
		at := fmt.Sprintf("notes[%d]", i)
		c.condition(at+".when", n.When)
		c.prose(at+".text", n.Text)
		c.link(at+".source", n.Source)
	}
}

func (c *checker) contradictions() {
	for i, x := range c.profile.Contradictions {
		at := fmt.Sprintf("contradictions[%d]", i)
		if len(x.Has) == 0 {
			c.problem(at, "a contradiction must have at least one setting")
		}
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(x.Has)), x.Lacks) {
			if !variable.MatchString(name) && !option.MatchString(name) {
				c.problem(at, "%q is not a variable or an option", name)
			}
			if _, err := path.Match(x.Has[name], ""); err != nil {
				c.problem(at+".has."+name, "%q is not a pattern: %w", x.Has[name], err)
			}
		}
		for _, name := range x.Differ {
			if _, ok := x.Has[name]; !ok {
				c.problem(at+".differ", "%q is not a name of has", name)
			}
		}
		c.condition(at+".when", x.When)
		c.prose(at+".because", x.Because)
		c.link(at+".source", x.Source)
		c.prose(at+".instead", x.Instead)
	}
}
