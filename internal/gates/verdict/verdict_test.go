package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestStatusTexts(t *testing.T) {
	for _, s := range []Status{NotMeasured, Pass, Fail, Waived} {
		text, _ := s.MarshalText()
		var back Status
		err := back.UnmarshalText(text)
		check.That(t, err == nil && back == s, "%v: got %v, %v", s, back, err)
	}
	var zero Status
	check.That(t, zero == NotMeasured, "the zero value must be not-measured")
	err := zero.UnmarshalText([]byte("passed"))
	check.That(t, err != nil, "an unknown verdict must not be read")
}

func TestStatusOutsideItsRange(t *testing.T) {
	for s, want := range map[Status]string{-1: "not-measured", 0: "not-measured", 3: "waived", 4: "not-measured"} {
		check.Same(t, fmt.Sprint(int(s)), want, s.String())
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		problems, seen []string
		status         Status
		evidence       string
	}{
		{nil, nil, NotMeasured, "nothing to check"},
		{nil, []string{"a", "b"}, Pass, "a; b"},
		{[]string{"x", "y"}, []string{"a"}, Fail, "x; y"},
		{[]string{"x"}, nil, Fail, "x"},
	} {
		a := Judge(c.problems, c.seen)
		check.That(t, a.Status == c.status && a.Evidence == c.evidence, "%q, %q: %v %q", c.problems, c.seen, a.Status, a.Evidence)
	}
}

func TestWaive(t *testing.T) {
	waivers := []recipe.Waiver{{Gate: "rdma", Because: "no fabric here", Issue: "https://example.org/7", Until: "2026-12-31"}}
	day := func(text string) time.Time {
		return must.Get(time.Parse(time.RFC3339, text))(t)
	}
	during, last, after := day("2026-11-01T00:00:00Z"), day("2026-12-31T23:59:59Z"), day("2027-01-01T00:00:00Z")
	for name, c := range map[string]struct {
		gate   string
		status Status
		now    time.Time
		want   Status
		says   string // in evidence or remedy
	}{
		"a failure on a day of the waiver": {"rdma", Fail, during, Waived, "seen"},
		"a failure on its last day":        {"rdma", Fail, last, Waived, "seen"},
		"a failure on the day after":       {"rdma", Fail, after, Fail, "expired on 2026-12-31: see https://example.org/7; do this"},
		"a failure on an unknown day":      {"rdma", Fail, time.Time{}, Fail, "expired on"},
		"a pass":                           {"rdma", Pass, during, Fail, "the gate passes, and its waiver expects a failure: seen"},
		"a pass after the last day":        {"rdma", Pass, after, Fail, "the gate passes, and its waiver expects a failure"},
		"not measured":                     {"rdma", NotMeasured, during, NotMeasured, "seen"},
		"a failure of another gate":        {"import", Fail, during, Fail, "seen"},
		"a pass of another gate":           {"import", Pass, during, Pass, "seen"},
		"waived earlier, waiver valid":     {"rdma", Waived, during, Waived, "seen"},
		"waived earlier, waiver expired":   {"rdma", Waived, after, Fail, "expired on 2026-12-31"},
		"waived earlier, waiver removed":   {"import", Waived, during, Fail, "no longer has a waiver for it; do this"},
	} {
		got := Verdict{Gate: c.gate, Status: c.status, Evidence: "seen", Remedy: "do this"}.Waive(waivers, c.now)
		check.That(t, got.Status == c.want && strings.Contains(got.Evidence+"; "+got.Remedy, c.says), "%s: got %+v", name, got)
		check.That(t, (got.Waiver != nil) == (c.gate == "rdma"), "%s: the waiver is not told: %+v", name, got)
		again := got.Waive(waivers, c.now)
		check.That(t, again.Status == got.Status && again.Evidence == got.Evidence, "%s: judged again it is %v", name, again.Status)
	}
}
