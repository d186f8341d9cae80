package verdict

import (
	"strings"
	"testing"
	"time"

	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestWaive(t *testing.T) {
	waivers := []recipe.Waiver{{Gate: "rdma", Because: "no fabric here", Issue: "https://example.org/7", Until: "2026-12-31"}}
	day := func(text string) time.Time {
		d, err := time.Parse(time.RFC3339, text)
		must.Succeed(t, err)
		return d
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
