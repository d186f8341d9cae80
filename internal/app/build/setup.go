// Package build holds the verbs that build cells and handle what a build leaves: run with
// its logs and reports, the second build, and the file system of a step.
package build

import (
	"builder/internal/app/host"
	"builder/internal/view/progress"
)

// A Setup is the state that the verbs of this package share.
type Setup struct {
	host.Setup
	Display *progress.Display // receives the events of cells; required by verbs that build
}
