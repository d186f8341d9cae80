package attest

import (
	"fmt"
	"slices"
	"time"

	"builder/internal/gates/verdict"
	"builder/internal/machine/gpu"
	"builder/internal/plan/recipe"
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

// contradiction returns the first difference between the result and its verdicts, or "".
func (r TestResult) contradiction() string {
	follows := NewTestResult(r.Verdicts, "", "", nil, time.Time{})
	switch {
	case r.Result != follows.Result:
		return fmt.Sprintf("its result is %q, and its verdicts say %s", r.Result, follows.Result)
	case !slices.Equal(r.Passed, follows.Passed) || !slices.Equal(r.Warned, follows.Warned) || !slices.Equal(r.Failed, follows.Failed):
		return "its lists of passed, waived and failed gates differ from its verdicts"
	}
	return ""
}

// Counted returns the rounds that count, the oldest first: those that judged by the entry
// of the provenance. Of a round from before the end of the build only the refusals count.
// It cannot have seen this build, but nobody may lose a refusal because a clock was wrong.
// Without a provenance all rounds count.
func (b Bundle) Counted() []TestResult {
	var counted []TestResult
	for _, r := range b.Rounds {
		if p := b.Provenance; p != nil {
			of := func(m Material) bool { return m.Name == "entry" && m.Digest["sha256"] == p.Definition.Internal.Key }
			if !slices.ContainsFunc(r.Configuration, of) {
				continue
			}
			if r.Finished.Before(p.Run.Metadata.Finished) {
				r.Verdicts = slices.DeleteFunc(slices.Clone(r.Verdicts), func(v verdict.Verdict) bool { return !v.Refuses() })
			}
		}
		if len(r.Verdicts) > 0 {
			counted = append(counted, r)
		}
	}
	slices.SortStableFunc(counted, func(x, y TestResult) int { return x.Finished.Compare(y.Finished) })
	return counted
}

// Verdicts returns one verdict for each gate over all rounds that count. A refusal ends
// only by a later pass of the same key.
func (b Bundle) Verdicts() []verdict.Verdict { return sum(b.Counted()) }

// Judged returns the verdicts as [Verify] judges them: with the waivers of the entry,
// as of the given time. A host without the entry could not apply them.
func (b Bundle) Judged(now time.Time) []verdict.Verdict {
	var waivers []recipe.Waiver
	if b.Provenance != nil {
		waivers = b.Provenance.Definition.Internal.Entry.Expect.Waivers
	}
	return verdict.WaiveAll(b.Verdicts(), waivers, now)
}

// A signedVerdict is the newest verdict of one key on one gate.
type signedVerdict struct {
	verdict.Verdict
	signer string // id of the key
}

// newestOfKeys returns the newest verdict of each key on each gate, the oldest first. A
// gate that could not run does not replace a measurement. The rounds are sorted by time.
func newestOfKeys(rounds []TestResult) []signedVerdict {
	var newest []signedVerdict
	for _, r := range rounds {
		for _, v := range r.Verdicts {
			i := slices.IndexFunc(newest, func(x signedVerdict) bool { return x.signer == r.signer && x.Gate == v.Gate })
			if i >= 0 && v.Status == verdict.NotMeasured {
				continue
			}
			if i >= 0 {
				newest = slices.Delete(newest, i, i+1)
			}
			newest = append(newest, signedVerdict{v, r.signer})
		}
	}
	return newest
}

// sum returns one verdict for each gate: the newest measurement, unless another key
// refused the gate and has not let it pass since. The rounds are sorted by time.
func sum(rounds []TestResult) []verdict.Verdict {
	of := map[string]signedVerdict{}
	for _, v := range newestOfKeys(rounds) {
		before, asked := of[v.Gate]
		switch {
		case !asked || before.Status == verdict.NotMeasured || v.foundFault():
			of[v.Gate] = v
		case v.Status == verdict.Pass && before.foundFault():
			before.Remedy = "a later pass counts only with the signature of the same key, " + before.signer + "; " + before.Remedy
			of[v.Gate] = before
		case v.Status == verdict.Pass:
			of[v.Gate] = v
		}
	}
	var verdicts []verdict.Verdict // the gates of the newest round first
	for _, r := range slices.Backward(rounds) {
		for _, v := range r.Verdicts {
			if answer, left := of[v.Gate]; left {
				verdicts = append(verdicts, answer.Verdict)
				delete(of, v.Gate)
			}
		}
	}
	return verdicts
}

// foundFault reports whether the gate found a fault, waived or not.
func (v signedVerdict) foundFault() bool {
	return v.Status == verdict.Fail || v.Status == verdict.Waived
}
