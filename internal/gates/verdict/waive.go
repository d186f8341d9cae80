package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"builder/internal/plan/recipe"
)

// unexpected is the first part of the evidence if a gate passes although the recipe
// expects a failure. Signed documents hold this text, so it must not change.
const unexpected = "the gate passes, and its waiver expects a failure: "

// Waive applies the recipe's waivers to a verdict as of now. A waived failure does not
// keep the artifact back until the end of the waiver's last day. A pass despite a
// waiver becomes a failure, because the waiver would hide the next failure. NotMeasured
// is never waived. Waive first removes the effect of an earlier call.
func (v Verdict) Waive(waivers []recipe.Waiver, now time.Time) Verdict {
	i := slices.IndexFunc(waivers, func(w recipe.Waiver) bool { return w.Gate == v.Gate })
	if saw, ok := strings.CutPrefix(v.Evidence, unexpected); ok && v.Status == Fail { // result of an earlier call
		v.Status, v.Evidence, v.Remedy, v.Waiver = Pass, saw, "", nil
	}
	if i < 0 {
		if v.Status == Waived { // waived earlier, or by another host
			v.Status, v.Waiver, v.Remedy = Fail, nil, "the recipe no longer has a waiver for it; "+v.Remedy
		}
		return v
	}
	w := waivers[i]
	v.Waiver = &w
	switch {
	case v.Status == Pass:
		v.Status = Fail
		v.Evidence = unexpected + v.Evidence
		v.Remedy = "the failure is corrected: remove the waiver from the recipe's expect"
	case v.Status == NotMeasured:
	case w.Expired(now):
		v.Status = Fail
		v.Remedy = fmt.Sprintf("the waiver expired on %s: see %s; %s", w.Until, w.Issue, v.Remedy)
	default:
		v.Status = Waived
	}
	return v
}

// WaiveAll applies the recipe's waivers to all verdicts as of now.
func WaiveAll(verdicts []Verdict, waivers []recipe.Waiver, now time.Time) []Verdict {
	judged := make([]Verdict, len(verdicts))
	for i, v := range verdicts {
		judged[i] = v.Waive(waivers, now)
	}
	return judged
}
