package verdict

import (
	"testing"

	"builder/test/kit/check"
)

func TestMerge(t *testing.T) {
	v := func(name string, s Status) Verdict { return Verdict{Gate: name, Status: s} }
	older := []Verdict{v("a", Pass), v("b", Fail), v("c", NotMeasured), v("d", Pass)}
	newer := []Verdict{v("c", Pass), v("b", NotMeasured), v("a", Fail), v("e", NotMeasured)}
	want := []Verdict{v("c", Pass), v("b", Fail), v("a", Fail), v("e", NotMeasured), v("d", Pass)}
	check.Same(t, "merged", want, Merge(older, newer))
	check.That(t, older[0].Status == Pass && newer[1].Status == NotMeasured, "what was merged has changed")
}
