package verdict

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	v := func(name string, s Status) Verdict { return Verdict{Gate: name, Status: s} }
	older := []Verdict{v("a", Pass), v("b", Fail), v("c", NotMeasured), v("d", Pass)}
	newer := []Verdict{v("c", Pass), v("b", NotMeasured), v("a", Fail), v("e", NotMeasured)}
	want := []Verdict{v("c", Pass), v("b", Fail), v("a", Fail), v("e", NotMeasured), v("d", Pass)}
	if diff := cmp.Diff(want, Merge(older, newer)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if older[0].Status != Pass || newer[1].Status != NotMeasured {
		t.Error("what was merged has changed")
	}
}
