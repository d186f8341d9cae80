package attest

import (
	"strings"
	"testing"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
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

// The record says that a cell passed on GPUs if every gate asked there passed. What the
// host with GPUs could not measure of the other gates does not count.
func TestProofOnGPUs(t *testing.T) {
	verdicts := func(sources, allreduce, train verdict.Status) Bundle {
		of := func(gate string, s verdict.Status) verdict.Verdict { return verdict.Verdict{Gate: gate, Status: s} }
		built := NewTestResult([]verdict.Verdict{of("size", verdict.Pass)}, "k", "v1", nil, time.Time{})
		there := NewTestResult([]verdict.Verdict{of("python-source", sources), of("gpu-allreduce", allreduce), of("gpu-train-step", train)}, "k", "v1", nil, time.Time{})
		return Bundle{Provenance: &Provenance{Definition: Definition{Internal: Internal{Key: "k"}}}, Rounds: []TestResult{built, there}}
	}
	for name, tt := range map[string]struct {
		b    Bundle
		want bool
	}{
		"all passed":            {verdicts(verdict.Pass, verdict.Pass, verdict.Pass), true},
		"sources not measured":  {verdicts(verdict.NotMeasured, verdict.Pass, verdict.Pass), true},
		"training not measured": {verdicts(verdict.Pass, verdict.Pass, verdict.NotMeasured), false},
		"a wrong sum":           {verdicts(verdict.Pass, verdict.Fail, verdict.Pass), false},
		"waived":                {verdicts(verdict.Pass, verdict.Pass, verdict.Waived), false},
	} {
		p, err := tt.b.Proof("w")
		check.That(t, err == nil && p.GPUs == tt.want, "%s: recorded %v, want %v, %v", name, p.GPUs, tt.want, err)
	}
}

// The channel stable promises working device code. Without a gate on GPUs an artifact
// with device code cannot reach it, and Unreachable gives the reason.
func TestStableAsksForAGateOnGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		expect recipe.Expect
		why    string
	}{
		"device code without a gate": {Stable, recipe.Expect{DeviceCode: []string{"gfx90a", "gfx942"}}, "stable requires a gate that runs its device code (gfx90a, gfx942) on GPUs"},
		"device code with a gate":    {Stable, recipe.Expect{DeviceCode: []string{"sm_90"}, Collectives: []string{"all_reduce"}}, ""},
		"no device code":             {Stable, recipe.Expect{Packages: []string{"tiny"}}, ""},
		"candidate requires no gate": {Candidate, recipe.Expect{DeviceCode: []string{"gfx90a"}}, ""},
	} {
		why := c.policy.Unreachable(c.expect)
		check.That(t, strings.HasPrefix(why, c.why) && (c.why != "" || why == ""), "%s: %q", name, why)
	}
}
