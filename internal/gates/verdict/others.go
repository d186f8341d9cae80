package verdict

// Others returns the verdicts of gates without a verdict in answers.
func Others(verdicts, answers []Verdict) []Verdict {
	answered := map[string]bool{}
	for _, v := range answers {
		answered[v.Gate] = true
	}
	var others []Verdict
	for _, v := range verdicts {
		if !answered[v.Gate] {
			others = append(others, v)
		}
	}
	return others
}
