package recipe

import (
	"errors"
	"regexp"
	"slices"

	"builder/internal/base/diag"
)

// A Behaviour is a question that only the running artifact can answer. Its script runs
// in a clean container without a network, with the artifact and its locked run-time
// dependencies. A wheel is installed; an archive is unpacked in $BUILDER_TREE. The
// answer is the last JSON object printed, which must be flat and hold only strings.
//
// Behaviours of the same name in several settings are merged. A script is then written
// once, and its expected answer may differ between cells.
type Behaviour struct {
	Name  string            `yaml:"name" json:"name" jsonschema:"description=lower case letters; digits and hyphens"`
	About string            `yaml:"about,omitempty" json:"about,omitempty" jsonschema:"description=what the script asks"`
	Run   string            `yaml:"run,omitempty" json:"run,omitempty" subst:"-" jsonschema:"description=shell script; the last JSON object in its output is the answer: flat and of strings"`
	Says  map[string]string `yaml:"says,omitempty" json:"says,omitempty" jsonschema:"description=what the artifact has to say; every key that is named here; equal"`
	Stock map[string]string `yaml:"stock,omitempty" json:"stock,omitempty" jsonschema:"description=what the source as upstream released it has to say under the same script; proves that the script sees the difference"`
}

var behaviourName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// Fault returns the missing parts of a behaviour of a cell, or nil.
func (b Behaviour) Fault() error {
	var errs []error
	for _, needed := range []struct {
		what    string
		missing bool
	}{
		{"about", b.About == ""},
		{"run", b.Run == ""},
		{"says", len(b.Says) == 0},
	} {
		if needed.missing {
			errs = append(errs, diag.Errorf(diag.Usage, "expect.behaviour %s needs %s", b.Name, needed.what))
		}
	}
	if len(b.Stock) > 0 && differs(b.Says, b.Stock) == "" {
		errs = append(errs, diag.Errorf(diag.Usage, "expect.behaviour %s: stock is equal to says, so it proves nothing", b.Name).
			WithHint("write a key of says with its value in upstream's release, or leave stock out"))
	}
	return errors.Join(errs...)
}

// StockFault returns an error for a behaviour with stock of a compiled artifact, unless
// its source is a released wheel. The container of stock holds the source as upstream
// released it, and nothing compiles it there.
func (s Settings) StockFault() error {
	if s.From.Kind == Wheel || len(s.Expect.Extensions) == 0 {
		return nil
	}
	var errs []error
	for _, b := range s.Expect.Behaviour {
		if len(b.Stock) > 0 {
			errs = append(errs, diag.Errorf(diag.Usage, "expect.behaviour %s: stock needs a source of kind wheel, because expect.extensions names compiled files: a source of kind %s is unpacked and not compiled", b.Name, s.From.Kind).
				WithHint("leave stock out, or take the source as a released wheel (from.kind: wheel)"))
		}
	}
	return errors.Join(errs...)
}

// validateBehaviours requires valid names, unique within a list. Other fields can only
// be checked for a cell.
func (r *Recipe) validateBehaviours(s written) []error {
	var errs []error
	for i, b := range s.Expect.Behaviour {
		where := r.index.At("%sexpect.behaviour[%d]", s.at, i)
		if !behaviourName.MatchString(b.Name) {
			errs = append(errs, diag.At(where, "%q is not the name of a behaviour such as visible-devices", b.Name))
		}
		if named(s.Expect.Behaviour, i) {
			errs = append(errs, diag.At(where, "behaviour %q occurs twice", b.Name))
		}
		for _, keys := range []map[string]string{b.Says, b.Stock} {
			if _, empty := keys[""]; empty {
				errs = append(errs, diag.At(where, "behaviour %q: a key is empty", b.Name))
			}
		}
	}
	return errs
}

// KnowsStock reports whether the artifact is compared with the source as released by
// upstream.
func (e Expect) KnowsStock() bool {
	return slices.ContainsFunc(e.Behaviour, func(b Behaviour) bool { return len(b.Stock) > 0 })
}
