package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOtherReleases(t *testing.T) {
	r := Result{Libraries: []Contender{
		{Label: "vendor", Version: "2.21.5-HEAD:9a0e6a1"},
		{Label: "same", Version: "2.21.5+hip6.3"},
		{Label: "silent"},
		{Label: "ours", Version: "2.20.5+hip6.2"},
	}}
	want := []string{"ours is release 2.20.5, vendor is 2.21.5: the ratio compares releases as much as builds"}
	if diff := cmp.Diff(want, r.OtherReleases()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.Libraries[0].Version = ""
	if got := r.OtherReleases(); len(got) > 0 {
		t.Errorf("the first does not say its release: %v", got)
	}
}
