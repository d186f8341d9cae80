package attest

import (
	"cmp"
	"slices"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
)

// TestResultType is the predicate type of gate results
// (https://in-toto.io/attestation/test-result/v0.1).
const TestResultType = "https://in-toto.io/attestation/test-result/v0.1"

// A TestResult holds the results of one round of gates. The first fields are defined by
// in-toto. Verdicts is authoritative, and the lists follow from it.
type TestResult struct {
	Result        string            `json:"result"` // PASSED, WARNED or FAILED
	Configuration []Material        `json:"configuration"`
	Passed        []string          `json:"passedTests"`
	Warned        []string          `json:"warnedTests"` // waived
	Failed        []string          `json:"failedTests"` // failed, and not measured
	Builder       string            `json:"builder"`     // version of the tool that ran the gates
	Finished      time.Time         `json:"finishedOn"`
	Host          *gpu.Host         `json:"host,omitempty"` // of device gates
	Verdicts      []verdict.Verdict `json:"verdicts"`

	signer string // id of the key, for a round that was read
}

// NewTestResult returns the result of a round of gates. key is the key of the entry
// used for judging, "" for none.
func NewTestResult(verdicts []verdict.Verdict, key, builder string, host *gpu.Host, finished time.Time) TestResult {
	r := TestResult{
		Result: "PASSED", Configuration: []Material{}, Passed: []string{}, Warned: []string{}, Failed: []string{},
		Builder: builder, Finished: finished.UTC(), Host: host, Verdicts: verdicts,
	}
	if key != "" {
		r.Configuration = append(r.Configuration, material("entry", "", key))
	}
	for _, v := range verdicts {
		switch v.Status {
		case verdict.Pass:
			r.Passed = append(r.Passed, v.Gate)
		case verdict.Waived:
			r.Warned = append(r.Warned, v.Gate)
		default:
			r.Failed = append(r.Failed, v.Gate)
		}
	}
	switch {
	case len(r.Failed) > 0 || len(verdicts) == 0:
		r.Result = "FAILED"
	case len(r.Warned) > 0:
		r.Result = "WARNED"
	}
	return r
}

// sum returns the newest verdict of each gate, whatever the order of the rounds.
func sum(rounds []TestResult) []verdict.Verdict {
	rounds = slices.Clone(rounds)
	slices.SortStableFunc(rounds, func(a, b TestResult) int { return cmp.Compare(a.Finished.UnixNano(), b.Finished.UnixNano()) })
	var verdicts []verdict.Verdict
	for _, r := range rounds {
		verdicts = verdict.Merge(verdicts, r.Verdicts)
	}
	return verdicts
}
