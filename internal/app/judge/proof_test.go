package judge

import (
	"testing"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
)

// The recorded level of upstream's tests is the highest that passed.
func TestProofHasTheLevelOfTests(t *testing.T) {
	verdicts := func(all ...verdict.Verdict) attest.Bundle {
		p := &attest.Provenance{Definition: attest.Definition{Internal: attest.Internal{Key: "k"}}}
		return attest.Bundle{Provenance: p, Rounds: []attest.TestResult{attest.NewTestResult(all, "k", "v1", nil, time.Time{})}}
	}
	size := verdict.Verdict{Gate: "size", Status: verdict.Pass}
	quick := verdict.Verdict{Gate: "upstream-tests", Status: verdict.Pass}
	full := verdict.Verdict{Gate: "upstream-tests-full", Status: verdict.Pass}
	waived := verdict.Verdict{Gate: "upstream-tests-full", Status: verdict.Waived}
	for want, b := range map[string]attest.Bundle{
		"none": verdicts(size), "quick": verdicts(size, quick, waived), "full": verdicts(full, quick),
	} {
		p, err := proofOf(b, "w")
		check.That(t, err == nil && p.Tests == want, "recorded %q, want %q, %v", p.Tests, want, err)
	}
}
