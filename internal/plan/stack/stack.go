// Package stack combines cells of several recipes. A [Stack] names the cells, the axes
// and facts in which they must agree, and the projects provided by the platform. It
// becomes a recipe without a source of its own, with its parts as inputs. The result is
// a wheelhouse: a folder of wheels that are installed together, with exact pins and
// digests, and a [Manifest] with the origin of each wheel.
//
// This package builds nothing. The parts are built, gated and kept as cells of their
// own recipes, alone or in a stack.
package stack

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/files/wheel"
	"builder/internal/plan/recipe"
)

// A Stack is one file as written.
type Stack struct {
	Name     string               `yaml:"name" json:"name" jsonschema:"description=name of the stack; also the name of the file; on the command line it is stack/NAME"`
	Summary  string               `yaml:"summary" json:"summary" jsonschema:"description=one line for builder list"`
	Parts    []recipe.Input       `yaml:"parts" json:"parts" jsonschema:"minItems=1,description=cells whose wheels go into the wheelhouse; an axis that is not named has the value that its recipe prefers"`
	Agree    []string             `yaml:"agree,omitempty" json:"agree,omitempty" jsonschema:"description=axes of parts and facts about wheels (builder gate WHEEL prints them) that are of one value in all parts"`
	Image    string               `yaml:"image" json:"image" jsonschema:"description=image of the empty container that the wheelhouse is installed in"`
	Profile  *Profile             `yaml:"profile,omitempty" json:"profile,omitempty" jsonschema:"description=the run-time environment; it is written beside the wheelhouse"`
	Extra    []string             `yaml:"extra,omitempty" json:"extra,omitempty" jsonschema:"description=Python requirements of the parts at run time; the lock holds their files and those of what they need in turn"`
	Loads    []recipe.LibraryLoad `yaml:"loads,omitempty" json:"loads,omitempty" jsonschema:"description=libraries of parts that a process gets when it imports a module"`
	Provided []recipe.Provided    `yaml:"provided,omitempty" json:"provided,omitempty" jsonschema:"description=Python projects that the platform brings: they are never taken from the index"`

	index decode.Index
}

// A Profile is the combination of a profile in which the stack runs. Its axes must
// agree with those of the parts.
type Profile struct {
	Name string            `yaml:"name" json:"name" jsonschema:"description=of a profile as builder profile takes it"`
	Axes map[string]string `yaml:"axes,omitempty" json:"axes,omitempty"`
}

// Prefix begins the name of a stack wherever a recipe's name is allowed, and the path
// of its results.
const Prefix = "stack/"

// FullName returns the name of the stack among recipes.
func (s *Stack) FullName() string { return Prefix + s.Name }

// Load reads every *.yaml of fsys. Positions in error messages begin with dir. It
// returns the errors of all files together.
func Load(fsys fs.FS, dir string) ([]*Stack, error) {
	return decode.Folder(fsys, dir, Parse)
}

// Parse reads one stack. name is its path in error messages. The base name without
// .yaml must be the name of the stack.
func Parse(name string, data []byte) (*Stack, error) {
	var s Stack
	f, err := decode.YAML(name, data, &s)
	if err != nil {
		return nil, err
	}
	s.index = f.Index
	f.Named("stack", s.Name)
	s.validate(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &s, nil
}

var project = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// validate adds the problems of the stack itself. [Stack.Recipe] checks its references to
// recipes.
func (s *Stack) validate(f *decode.File) {
	for i, p := range s.Parts {
		if strings.HasPrefix(p.Recipe, Prefix) {
			f.Add(fmt.Sprintf("parts[%d]", i), "a part must name a recipe other than a stack, not %q", p.Recipe)
		}
	}
	for i, name := range s.Agree {
		if slices.Contains(s.Agree[:i], name) {
			f.Add(fmt.Sprintf("agree[%d]", i), "%q occurs twice", name)
		}
	}
	s.validateLoads(f)
	s.validateProvided(f)
}

var (
	module  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	library = regexp.MustCompile(`^lib[A-Za-z0-9._+-]+\.so(\.[0-9]+)*$`)
)

func (s *Stack) validateLoads(f *decode.File) {
	for i, l := range s.Loads {
		at := fmt.Sprintf("loads[%d]", i)
		isProject := func(p recipe.Provided) bool { return wheel.NormalName(p.Project) == wheel.NormalName(l.Project) }
		isSame := func(o recipe.LibraryLoad) bool { return o.Import == l.Import }
		switch {
		case !module.MatchString(l.Import):
			f.Add(at, "import: %q is not the name of a Python module", l.Import)
		case slices.ContainsFunc(s.Loads[:i], isSame):
			f.Add(at, "import: %q occurs twice", l.Import)
		case !library.MatchString(l.Library):
			f.Add(at, "library: %q is not the file name of a library, such as libnccl.so.2", l.Library)
		case !project.MatchString(l.Project):
			f.Add(at, "project: %q is not the name of a Python project", l.Project)
		case slices.ContainsFunc(s.Provided, isProject):
			f.Add(at, "project: the platform provides %s, so no part brings it", l.Project)
		}
	}
}

func (s *Stack) validateProvided(f *decode.File) {
	seen := map[string]bool{}
	for i, p := range s.Provided {
		at := fmt.Sprintf("provided[%d]", i)
		name := wheel.NormalName(p.Project)
		switch {
		case !project.MatchString(p.Project):
			f.Add(at, "%q is not the name of a Python project", p.Project)
		case seen[name]:
			f.Add(at, "%s occurs twice", p.Project)
		}
		seen[name] = true
	}
}
