package bench

import (
	"fmt"

	"builder/internal/machine/nccltests"
)

// OtherReleases says which libraries are of another release than the first, whose
// ratios tell as much of the releases as of the builds; a library that does not
// say its release is left out.
func (r Result) OtherReleases() []string {
	first := nccltests.ReleaseOf(r.Libraries[0].Version)
	var said []string
	for _, l := range r.Libraries[1:] {
		if release := nccltests.ReleaseOf(l.Version); first != "" && release != "" && release != first {
			said = append(said, fmt.Sprintf("%s is release %s, %s is %s: the ratio compares releases as much as builds", l.Label, release, r.Libraries[0].Label, first))
		}
	}
	return said
}
