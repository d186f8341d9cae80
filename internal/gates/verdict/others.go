package verdict

import "slices"

// Others returns the verdicts of gates without a verdict in answers.
func Others(verdicts, answers []Verdict) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool {
		return slices.ContainsFunc(answers, func(a Verdict) bool { return a.Gate == v.Gate })
	})
}
