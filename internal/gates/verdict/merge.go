package verdict

// Merge returns the verdicts of both. The newer answer of a gate replaces the
// older, except that a gate that could not look takes nothing back that was
// measured: these are the same bytes. Neither is changed.
func Merge(older, newer []Verdict) []Verdict {
	measured := map[string]Verdict{}
	for _, v := range older {
		if v.Status != NotMeasured {
			measured[v.Gate] = v
		}
	}
	answered := map[string]bool{}
	var merged []Verdict
	for _, v := range newer {
		if before, ok := measured[v.Gate]; ok && v.Status == NotMeasured {
			v = before
		}
		answered[v.Gate] = true
		merged = append(merged, v)
	}
	return append(merged, Others(older, answered)...)
}

// Others returns the verdicts of gates that are not among those answered.
func Others(verdicts []Verdict, answered map[string]bool) []Verdict {
	var others []Verdict
	for _, v := range verdicts {
		if !answered[v.Gate] {
			others = append(others, v)
		}
	}
	return others
}
