package profile

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"builder/internal/base/decode"
	"builder/internal/plan/recipe"
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
	f, err := decode.YAML(name, data, &p)
	if err != nil {
		return nil, err
	}
	p.index = f.Index
	f.Named("profile", p.Name)
	if !word.MatchString(p.Name) {
		f.Add("name", "%q is not a name such as openrlhf", p.Name)
	}
	f.Prose("summary", p.Summary)
	c := checker{f, &p}
	c.axes()
	c.releasedWith()
	c.settings()
	c.notes()
	c.contradictions()
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

var word = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// checker adds the problems of a profile as written.
type checker struct {
	*decode.File
	profile *Profile
}

func (c checker) link(at, text string) {
	if !strings.HasPrefix(text, "https://") || strings.ContainsFunc(text, unsafeInLink) {
		c.Add(at, "%s is not an https link: %q", at, text)
	}
}

func unsafeInLink(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }

// axisValue matches a version or a word.
var axisValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`)

// axes checks the axes and their rules as in a recipe. A line of the output names values, so
// each is a version or a word.
func (c checker) axes() {
	recipe.CheckMatrix(c.File, c.profile.Axes, c.profile.Compatible)
	for i, a := range c.profile.Axes {
		for j, v := range a.Values {
			if !axisValue.MatchString(v) {
				c.Add(fmt.Sprintf("axes[%d].values[%d]", i, j), "%q cannot be a value: write a version or a word", v)
			}
		}
	}
}

// condition checks a condition, which may be empty.
func (c checker) condition(at string, cond recipe.Condition) {
	if len(cond) > 0 {
		recipe.CheckWhen(c.File, c.profile.Axes, cond, at)
	}
	for name, text := range cond {
		if strings.ContainsFunc(text, unicode.IsControl) {
			c.Add(at+"."+name, "a constraint must be one line")
		}
	}
}

func (c checker) releasedWith() {
	with := c.profile.ReleasedWith
	if with == nil {
		return
	}
	for i, row := range with.Rows {
		c.condition(fmt.Sprintf("released-with.rows[%d]", i), row)
	}
	c.Prose("released-with.because", with.Because)
	c.link("released-with.source", with.Source)
}

func (c checker) settings() {
	for i, s := range c.profile.Settings {
		at := fmt.Sprintf("settings[%d]", i)
		switch {
		case (s.Env == "") == (s.Option == ""):
			c.Add(at, "a setting must have either env or option")
		case s.Env != "" && !variable.MatchString(s.Env):
			c.Add(at+".env", "%q is not the name of a variable", s.Env)
		case s.Option != "" && !option.MatchString(s.Option):
			c.Add(at+".option", "%q is not an option such as --name", s.Option)
		case !isPlain(s.Value):
			c.Add(at+".value", "the value %q needs quotes, which are not supported", s.Value)
		}
		c.Prose(at+".where", s.Where)
		c.condition(at+".when", s.When)
		c.Prose(at+".because", s.Because)
		c.link(at+".source", s.Source)
	}
}

func (c checker) notes() {
	for i, n := range c.profile.Notes {
		at := fmt.Sprintf("notes[%d]", i)
		c.condition(at+".when", n.When)
		c.Prose(at+".text", n.Text)
		c.link(at+".source", n.Source)
	}
}

func (c checker) contradictions() {
	for i, x := range c.profile.Contradictions {
		at := fmt.Sprintf("contradictions[%d]", i)
		if len(x.Has) == 0 {
			c.Add(at, "a contradiction must have at least one setting")
		}
		for _, name := range slices.Concat(slices.Sorted(maps.Keys(x.Has)), x.Lacks) {
			if !variable.MatchString(name) && !option.MatchString(name) {
				c.Add(at, "%q is not a variable or an option", name)
			}
			if _, err := path.Match(x.Has[name], ""); err != nil {
				c.Add(at+".has."+name, "%q is not a pattern: %w", x.Has[name], err)
			}
		}
		for _, name := range x.Differ {
			if _, ok := x.Has[name]; !ok {
				c.Add(at+".differ", "%q is not a name of has", name)
			}
		}
		c.condition(at+".when", x.When)
		c.Prose(at+".because", x.Because)
		c.link(at+".source", x.Source)
		c.Prose(at+".instead", x.Instead)
	}
}
