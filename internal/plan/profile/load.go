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
	c.releasedWith()
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

// axes checks the axes and their rules as in a recipe. A line of the output names values, so
// each is a version or a word.
func (c *checker) axes() {
	c.errs = append(c.errs, recipe.CheckMatrix(c.profile.Axes, c.profile.Compatible, c.profile.index)...)
	for i, a := range c.profile.Axes {
		for j, v := range a.Values {
			if !axisValue.MatchString(v) {
				c.problem(fmt.Sprintf("axes[%d].values[%d]", i, j), "%q cannot be a value: write a version or a word", v)
			}
		}
	}
}

// condition checks a condition, which may be empty.
func (c *checker) condition(at string, cond recipe.Condition) {
	if len(cond) > 0 {
		c.errs = append(c.errs, recipe.CheckWhen(c.profile.Axes, cond, c.profile.index, at)...)
	}
	for name, text := range cond {
		if strings.ContainsFunc(text, unicode.IsControl) {
			c.problem(at+"."+name, "a constraint must be one line")
		}
	}
}

func (c *checker) releasedWith() {
	with := c.profile.ReleasedWith
	if with == nil {
		return
	}
	for i, row := range with.Rows {
		c.condition(fmt.Sprintf("released-with.rows[%d]", i), row)
	}
	if len(with.Rows) == 0 {
		c.problem("released-with", "released-with has no rows")
	}
	c.prose("released-with.because", with.Because)
	c.link("released-with.source", with.Source)
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
