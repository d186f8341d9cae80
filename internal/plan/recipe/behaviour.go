package recipe

import (
	"errors"
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
	if len(b.Stock) > 0 && !b.differs() {
		errs = append(errs, diag.Errorf(diag.Usage, "expect.behaviour %s: stock is equal to says, so it proves nothing", b.Name).
			WithHint("write a key of says with its value in upstream's release, or leave stock out"))
	}
	return errors.Join(errs...)
}

// differs reports whether upstream's release has another value for a key of the answer.
func (b Behaviour) differs() bool {
	for key, stock := range b.Stock {
		if says, ok := b.Says[key]; ok && says != stock {
			return true
		}
	}
	return false
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

// KnowsStock reports whether the artifact is compared with the source as released by
// upstream.
func (e Expect) KnowsStock() bool {
	return slices.ContainsFunc(e.Behaviour, func(b Behaviour) bool { return len(b.Stock) > 0 })
}
