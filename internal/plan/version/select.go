package version

import (
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// Ascending returns the values of an axis for a reader: versions from the oldest to the
// newest, then words in their order.
func Ascending(values []string) []string {
	return slices.SortedStableFunc(slices.Values(values), Order)
}

// Order compares two values as [Ascending] sorts them.
func Order(a, b string) int {
	x, wordX := Parse(a)
	y, wordY := Parse(b)
	switch {
	case wordX == nil && wordY == nil:
		return Compare(x, y)
	case wordX == nil:
		return -1
	case wordY == nil:
		return 1
	}
	return 0
}

// Select returns the values of known selected by text, in the order of known. Text is
// an exact value or the first numbers of one (6.1 for the newest 6.1.x), an alias
// (mi300x, cp311), a list (6.1,6.2), a constraint (>=6.0,<6.3) or all. all leaves out
// the value none, so that --rocm all selects no cell without ROCm; [Every] selects it.
func Select(text string, known []string) ([]string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return nil, advise(diag.Errorf(diag.Usage, "the value is empty"), text, known)
	case strings.ContainsAny(text, "<>=!"):
		return constrained(text, known)
	}
	var values []string
	for part := range strings.SplitSeq(text, ",") {
		found, err := named(strings.TrimSpace(part), known)
		if err != nil {
			return nil, err
		}
		values = append(values, found...)
	}
	return keep(known, func(k string) bool { return slices.Contains(values, k) }), nil
}

// Latest is the word for the newest value that goes with the other axes.
const Latest = "latest"

// Candidates returns the values that a text may mean, the likeliest first: every version
// from the newest to the oldest for latest, and an exact value before those of which it is
// the first numbers. It returns nil if the text means one value or is not one version.
func Candidates(text string, known []string) []string {
	newest := Ascending(keep(known, Is))
	slices.Reverse(newest)
	if text == Latest {
		return newest
	}
	want, err := Parse(text)
	if err != nil || want.segments == 1 {
		return nil
	}
	values := beginning(want, newest)
	if slices.Contains(values, text) {
		values = append([]string{text}, keep(values, func(k string) bool { return k != text })...)
	}
	if len(values) < 2 {
		return nil
	}
	return values
}

// Coarser returns the value with the most numbers of which text is a finer release: 6.1
// for 6.1.3.
func Coarser(text string, known []string) (value string, ok bool) {
	want, err := Parse(text)
	if err != nil {
		return "", false
	}
	most := 0
	for _, k := range known {
		if v, err := Parse(k); err == nil && v.segments < want.segments && want.hasPrefix(v) && v.segments > most {
			value, most = k, v.segments
		}
	}
	return value, most > 0
}

const all = "all"

// None is the value of an axis without effect.
const None = "none"

// Every returns the text with which [Select] returns all known values.
func Every(known []string) string {
	if len(others(known)) < len(known) {
		return all + "," + None
	}
	return all
}

// others returns the values other than None, or None if it is the only one.
func others(known []string) []string {
	if kept := keep(known, func(k string) bool { return k != None }); len(kept) > 0 {
		return kept
	}
	return known
}

func constrained(text string, known []string) ([]string, error) {
	c, err := ParseConstraint(text)
	if err != nil {
		return nil, advise(diag.Errorf(diag.Usage, "%w", err), text, known)
	}
	values := keep(known, c.AllowsText)
	if len(values) == 0 {
		return nil, advise(diag.Errorf(diag.Usage, "no known value is %s", text), text, known)
	}
	return values, nil
}

// named returns the values named by a part of a list: one, or several for the word all.
func named(text string, known []string) ([]string, error) {
	if text == all {
		return others(known), nil
	}
	if slices.Contains(known, text) {
		return []string{text}, nil
	}
	if value, ok := alias(text, known); ok {
		return []string{value}, nil
	}
	want, err := Parse(text)
	values := beginning(want, known)
	switch {
	case err != nil || len(values) == 0:
		return nil, advise(diag.Errorf(diag.Usage, "%q is not a known value", clip(text)), text, known)
	case want.segments == 1:
		return nil, diag.Errorf(diag.Usage, "%q is not precise", text).
			WithHint("write %s, or the range '>=%d,<%d'", strings.Join(Ascending(values), " or "), want.numbers()[0], want.numbers()[0]+1)
	}
	return []string{slices.MaxFunc(values, Order)}, nil
}

// beginning returns the versions that begin with the numbers of one.
func beginning(want Version, known []string) []string {
	return keep(known, func(k string) bool {
		v, err := Parse(k)
		return err == nil && want.core != nil && v.hasPrefix(want)
	})
}

func keep(values []string, ok func(string) bool) []string {
	var kept []string
	for _, v := range values {
		if ok(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
