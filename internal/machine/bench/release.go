package bench

import (
	"fmt"

	"builder/internal/machine/nccltests"
)

// OtherReleases returns a note for each library of a different release than the first.
// The ratio of such a library compares releases as much as builds. A library without a
// known release gets no note.
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
