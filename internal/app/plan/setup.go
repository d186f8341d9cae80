// Package plan holds the verbs that choose cells and explain them: plan, lock, matrix and
// patch. It turns the chosen cells of a catalogue into locked entries.
package plan

import (
	"builder/internal/base/regular"
	"builder/internal/build/native"
	"builder/internal/evidence/signing"
	"builder/internal/input/pypi"
	"builder/internal/plan/catalogue"
	"builder/pipelines"
)

// A Setup is the state that the verbs of this package share.
type Setup struct {
	Catalogue catalogue.Catalogue
	Sources   Sources
	Keys      signing.Keys
	NoInstall bool // never install host packages
}

// Revision is a digest of the parts of a build outside the recipe: the scripts of the
// steps, uv, bubblewrap (it isolates steps), and the engine.
func Revision() string {
	return regular.Sum([]byte(pipelines.Revision() + " uv " + pypi.UV.Pin().SHA256 + " bubblewrap " + pypi.Bubblewrap.Pin().SHA256 + " dagger " + native.Version))
}
