package attest

import (
	"testing"
	"time"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
)

// The recorded level of upstream's tests is the highest that passed.
func TestProofHasTheLevelOfTests(t *testing.T) {
	verdicts := func(all ...verdict.Verdict) Bundle {
		p := &Provenance{Definition: Definition{Internal: Internal{Key: "k"}}}
		return Bundle{Provenance: p, Rounds: []TestResult{NewTestResult(all, "k", "v1", nil, time.Time{})}}
	}
	size := verdict.Verdict{Gate: "size", Status: verdict.Pass}
	quick := verdict.Verdict{Gate: "upstream-tests", Status: verdict.Pass}
	full := verdict.Verdict{Gate: "upstream-tests-full", Status: verdict.Pass}
	waived := verdict.Verdict{Gate: "upstream-tests-full", Status: verdict.Waived}
	for want, b := range map[string]Bundle{
		"none": verdicts(size), "quick": verdicts(size, quick, waived), "full": verdicts(full, quick),
	} {
		p, err := b.Proof("w")
		check.That(t, err == nil && p.Tests == want, "recorded %q, want %q, %v", p.Tests, want, err)
	}
}
