package attest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// sizeIs is a verdict of the gate size, which every policy requires of the test's entry.
func sizeIs(status verdict.Status) []verdict.Verdict {
	return []verdict.Verdict{{Gate: "size", Status: status, Evidence: "seen", Remedy: "do this"}}
}

// add signs a round with the key of the bundle.
func (b bundle) add(r TestResult) {
	b.t.Helper()
	must.Succeed(b.t, (Sealer{b.key}).AddRound(b.wheel, r))
}

// by returns the bundle with another signer, and trust in both keys.
func (b bundle) by(k signing.Key) (bundle, signing.Trust) {
	trust := b.trust()
	trust.Keys = append(trust.Keys, k.Public())
	b.key = k
	return b, trust
}

// A signature does not make a round count: its time, its promise and its own result must
// agree with the provenance and with its verdicts.
func TestRoundsThatDoNotCount(t *testing.T) {
	result := func(b bundle, status verdict.Status, key string, after time.Duration) TestResult {
		return NewTestResult(sizeIs(status), key, "v1", nil, built.Add(after))
	}
	for name, c := range map[string]struct {
		do   func(b bundle)
		says string // "" if the artifact passes
	}{
		"a pass from the future beside a refusal": {func(b bundle) {
			b.round(sizeIs(verdict.Fail), 3*time.Minute)
			b.round(sizeIs(verdict.Pass), 73*365*24*time.Hour)
		}, "it is from the future: it was made on 2099-"},
		"a pass of the next hours": {func(b bundle) { b.round(sizeIs(verdict.Pass), 20*time.Hour) }, ""},
		"a refusal from before the build": {func(b bundle) {
			b.drop()
			b.round([]verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}, {Gate: "python-source", Status: verdict.Pass}, {Gate: "build-paths", Status: verdict.Pass}}, 2*time.Minute)
			b.round(sizeIs(verdict.Fail), -time.Hour)
		}, "verdicts: gate size: fail: seen"},
		"only a pass from before the build": {func(b bundle) {
			b.drop()
			b.round([]verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}, {Gate: "python-source", Status: verdict.Pass}, {Gate: "build-paths", Status: verdict.Pass}}, 2*time.Minute)
			b.round(sizeIs(verdict.Pass), -100*365*24*time.Hour)
		}, "verdicts: gate size did not run"},
		"a pass by another promise after a refusal": {func(b bundle) {
			b.round(sizeIs(verdict.Fail), 3*time.Minute)
			b.add(result(b, verdict.Pass, strings.Repeat("0", 64), 4*time.Minute))
		}, "verdicts: gate size: fail: seen"},
		"a pass without a promise after a refusal": {func(b bundle) {
			b.round(sizeIs(verdict.Fail), 3*time.Minute)
			b.add(result(b, verdict.Pass, "", 4*time.Minute))
		}, "verdicts: gate size: fail: seen"},
		"a refusal by another promise": {func(b bundle) { b.add(result(b, verdict.Fail, strings.Repeat("0", 64), 4*time.Minute)) }, ""},
		"FAILED with passing verdicts": {func(b bundle) {
			r := result(b, verdict.Pass, b.entry.Key(), 4*time.Minute)
			r.Result = "FAILED"
			b.add(r)
		}, `it contradicts itself: its result is "FAILED", and its verdicts say PASSED`},
		"PASSED with failing verdicts": {func(b bundle) {
			r := result(b, verdict.Fail, b.entry.Key(), 4*time.Minute)
			r.Result = "PASSED"
			b.add(r)
		}, `it contradicts itself: its result is "PASSED", and its verdicts say FAILED`},
		"a passed gate among the failed ones": {func(b bundle) {
			r := result(b, verdict.Pass, b.entry.Key(), 4*time.Minute)
			r.Passed, r.Failed = r.Failed, r.Passed
			b.add(r)
		}, "it contradicts itself: its lists"},
	} {
		b := newBundle(t)
		c.do(b)
		checks := b.verify(Candidate)
		got := wrong(checks)
		check.That(t, (c.says != "" || len(got) == 0) && (c.says == "" || slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, c.says) })),
			"%s: %q, want %q", name, got, c.says)
	}
}

// drop removes the round of the build.
func (b bundle) drop() { b.remove(b.rounds()[0]) }

// A round that does not count is told, so that nobody looks for the reason.
func TestRoundsThatDoNotCountAreTold(t *testing.T) {
	b := newBundle(t)
	b.add(NewTestResult(sizeIs(verdict.Pass), "", "v1", nil, built.Add(3*time.Minute)))
	checks := b.verify(Candidate)
	if last := checks[len(checks)-1]; last.Seen != "4 gates in 1 rounds, policy candidate; 1 rounds do not count: they judged by another entry, or before this build ended" {
		t.Errorf("%+v", last)
	}
}

// A refusal ends only by a later pass of the key that refused.
func TestARefusalEndsByThePassOfItsKey(t *testing.T) {
	b := newBundle(t)
	second := testKey(t)
	other, trust := b.by(second)
	verify := func() []Check {
		_, checks := Verify(b.wheel, trust, Candidate)
		return checks
	}
	other.round(sizeIs(verdict.Fail), 3*time.Minute)
	b.round(sizeIs(verdict.Pass), 4*time.Minute)
	checks := verify()
	check.Same(t, "after the pass of another key", []string{"verdicts: gate size: fail: seen"}, wrong(checks))
	if remedy := checks[len(checks)-1].Remedy; remedy != "a later pass counts only with the signature of the same key, "+second.Public().ID+"; do this" {
		t.Errorf("remedy %q", remedy)
	}
	other.round(sizeIs(verdict.NotMeasured), 5*time.Minute)
	got := wrong(verify())
	check.That(t, len(got) == 1, "after a round that measured nothing: %q", got)
	other.round(sizeIs(verdict.Pass), 6*time.Minute)
	got = wrong(verify())
	check.That(t, len(got) == 0, "after the pass of the same key: %q", got)
}

// Of several answers to one gate, a measurement counts before a gate that could not run,
// and a refusal before the pass of another key.
func TestSum(t *testing.T) {
	round := func(signer string, statuses ...verdict.Status) (rounds []TestResult) {
		for _, s := range statuses {
			r := NewTestResult(sizeIs(s), "", "v1", nil, built)
			r.signer = signer
			rounds = append(rounds, r)
		}
		return rounds
	}
	for _, c := range []struct {
		name   string
		rounds []TestResult
		want   verdict.Status
	}{
		{"a measurement replaces none", slices.Concat(round("a", verdict.NotMeasured), round("b", verdict.Pass)), verdict.Pass},
		{"none replaces no measurement", slices.Concat(round("a", verdict.Pass), round("b", verdict.NotMeasured)), verdict.Pass},
		{"a refusal after a pass", slices.Concat(round("a", verdict.Pass), round("b", verdict.Fail)), verdict.Fail},
		{"a refusal before a pass", slices.Concat(round("a", verdict.Fail), round("b", verdict.Pass)), verdict.Fail},
		{"a waived fault before a pass", slices.Concat(round("a", verdict.Waived), round("b", verdict.Pass)), verdict.Waived},
		{"one key changes its answer", round("a", verdict.Fail, verdict.Pass), verdict.Pass},
		{"one key changes its answer between others", slices.Concat(round("a", verdict.Fail), round("b", verdict.Pass), round("a", verdict.Pass)), verdict.Pass},
	} {
		got := sum(c.rounds)
		check.That(t, len(got) == 1 && got[0].Status == c.want, "%s: %+v, want %v", c.name, got, c.want)
	}
}
