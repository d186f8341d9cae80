package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/plan/recipe"
)

// unexpected begins the evidence of a gate that passes although the recipe says that it
// fails. What is signed holds it, so that it is not changed.
const unexpected = "a failure was expected, and the gate passes: "

// Waive judges a verdict by the waivers of its recipe as of now: a failure that
// is waived does not keep the artifact back, until the waiver's last day is
// over. A gate that passes although its failure is expected fails, because the
// waiver would hide the next failure; one that has not measured stays so. The
// verdict of an earlier day is judged anew.
func (v Verdict) Waive(waivers []recipe.Waiver, now time.Time) Verdict {
	i := slices.IndexFunc(waivers, func(w recipe.Waiver) bool { return w.Gate == v.Gate })
	if saw, ok := strings.CutPrefix(v.Evidence, unexpected); ok && v.Status == Fail { // judged once already
		v.Status, v.Evidence, v.Remedy, v.Waiver = Pass, saw, "", nil
	}
	if i < 0 {
		if v.Status == Waived { // of an earlier day, or of a stranger
			v.Status, v.Waiver, v.Remedy = Fail, nil, "the recipe has no waiver for it any more; "+v.Remedy
		}
		return v
	}
	w := waivers[i]
	v.Waiver = &w
	switch {
	case v.Status == Pass:
		v.Status = Fail
		v.Evidence = unexpected + v.Evidence
		v.Remedy = "it is mended: take the waiver out of the recipe's expect"
	case v.Status == NotMeasured:
	case w.Expired(now):
		v.Status = Fail
		v.Remedy = fmt.Sprintf("the waiver ended on %s: see %s; %s", w.Until, w.Issue, v.Remedy)
	default:
		v.Status = Waived
	}
	return v
}

// WaiveAll judges every verdict by the waivers of its recipe as of now.
func WaiveAll(verdicts []Verdict, waivers []recipe.Waiver, now time.Time) []Verdict {
	judged := make([]Verdict, len(verdicts))
	for i, v := range verdicts {
		judged[i] = v.Waive(waivers, now)
	}
	return judged
}
