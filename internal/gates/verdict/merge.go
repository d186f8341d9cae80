package verdict

// Merge returns the verdicts of both lists, for the same bytes. The newer answer of a
// gate replaces the older, but a newer NotMeasured does not replace a measurement.
// Merge changes neither list.
func Merge(older, newer []Verdict) []Verdict {
	measured := map[string]Verdict{}
	for _, v := range older {
		if v.Status != NotMeasured {
			measured[v.Gate] = v
		}
	}
	var merged []Verdict
	for _, v := range newer {
		if before, ok := measured[v.Gate]; ok && v.Status == NotMeasured {
			v = before
		}
		merged = append(merged, v)
	}
	return append(merged, Others(older, newer)...)
}

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
