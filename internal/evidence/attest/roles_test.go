package attest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// wrong lists all problems of checks.
func wrong(checks []Check) (all []string) {
	for _, c := range checks {
		for _, w := range c.Wrong {
			all = append(all, c.Name+": "+w)
		}
	}
	return all
}

// verifyAs verifies the wheel with roles of the key of the bundle.
func (b bundle) verifyAs(roles []signing.Role, more ...signing.PublicKey) []Check {
	trust := b.trust()
	trust.Keys[0].File, trust.Keys[0].Roles = "trust.yaml", roles
	trust.Keys = append(trust.Keys, more...)
	_, checks := Verify(b.wheel, trust, Candidate)
	return checks
}

// A key counts for its roles alone. The error names the key, the file and the role, and
// the remedy is the role to add.
func TestRolesOfKeys(t *testing.T) {
	b := newBundle(t)
	for name, roles := range map[string][]signing.Role{"no roles": nil, "its roles": {signing.Maker, signing.GateHost}} {
		if got := wrong(b.verifyAs(roles)); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	key := b.key.Public().String()
	for role, c := range map[signing.Role]struct {
		wrong, remedy string
		fails         []string // the checks
	}{
		signing.GateHost: {"signatures: provenance.sigstore.json, sbom.sigstore.json: it is signed by " + key + ", and trust.yaml does not give it the role builder",
			"if " + key + " may sign that, add builder to its roles in trust.yaml", []string{"signatures", "provenance", "sbom"}},
		signing.Maker: {"it is signed by " + key + ", and trust.yaml does not give it the role gates: it has a verdict of wheel-format",
			"if " + key + " may sign that, add gates to its roles in trust.yaml", []string{"signatures", "verdicts"}},
	} {
		checks := b.verifyAs([]signing.Role{role})
		if got := wrong(checks); !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, c.wrong) }) {
			t.Errorf("%s: %q", role, got)
		}
		var fails []string
		for _, check := range checks {
			if len(check.Wrong) == 0 {
				continue
			}
			if fails = append(fails, check.Name); check.Remedy != c.remedy {
				t.Errorf("%s: %s: remedy %q", role, check.Name, check.Remedy)
			}
		}
		check.That(t, slices.Equal(fails, c.fails), "%s: %q fail", role, fails)
	}
}

// The verdict of a second build needs the role of a rebuilder, and nothing else does.
func TestRoleOfARebuilder(t *testing.T) {
	b := newBundle(t)
	second := testKey(t)
	other := bundle{b.t, second, b.entry, b.wheel}
	other.round([]verdict.Verdict{{Gate: reproducible, Status: verdict.Pass, Evidence: "equal"}}, 3*time.Minute)
	of := func(roles ...signing.Role) signing.PublicKey {
		k := second.Public()
		k.File, k.Roles = "trust.yaml", roles
		return k
	}
	if got := wrong(b.verifyAs(nil, of(signing.Rebuilder))); len(got) > 0 {
		t.Errorf("%q", got)
	}
	got := wrong(b.verifyAs(nil, of(signing.GateHost, signing.Maker)))
	if len(got) != 1 || !strings.Contains(got[0], "trust.yaml does not give it the role rebuilder: it has a verdict of reproducible") {
		t.Errorf("%q", got)
	}
}

// A key with limits signs nothing that no role covers.
func TestNoRoleCoversAnUnknownStatement(t *testing.T) {
	b := newBundle(t)
	if err := (Sealer{b.key}).write(Dir(b.wheel.Path), "more.sigstore.json", []artifact.Artifact{b.wheel}, "urn:example:more", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if got := wrong(b.verifyAs(nil)); len(got) > 0 {
		t.Errorf("%q", got)
	}
	got := wrong(b.verifyAs([]signing.Role{signing.Maker, signing.GateHost, signing.Rebuilder}))
	check.That(t, len(got) == 1 && strings.Contains(got[0], "no role of trust.yaml covers a statement of the type urn:example:more"),
		"%q", got)
}

// The first look at a wheel of somebody else is one sentence: whose key it is, and what to
// do.
func TestFirstContact(t *testing.T) {
	b := newBundle(t)
	b.key = testKey(t)
	p := NewProvenance(b.entry, Build{Builder: Builder{ID: "urn:builder:local"}, Started: built, Finished: built.Add(time.Minute)})
	must.Succeed(t, (Sealer{b.key}).Seal([]artifact.Artifact{b.wheel}, p))
	_, checks := Verify(b.wheel, signing.Trust{Keys: []signing.PublicKey{testKey(t).Public()}, Now: built}, Candidate)
	want := "signatures: provenance.sigstore.json, sbom.sigstore.json: an untrusted key signed it: " + b.key.Public().ID
	got := wrong(checks)
	check.That(t, len(got) == 1 && got[0] == want, "%q, want %q", got, want)
	check.That(t, len(checks) == 1 && checks[0].Remedy == stranger, "%+v", checks)
}

// The trust file can require second builds by several keys. The key of the first build
// does not count, and a key with other bytes is named even if a later build agrees.
func TestSecondBuildsOfSeveralKeys(t *testing.T) {
	b := newBundle(t)
	trust := b.trust()
	trust.Rebuilders = map[string]int{string(Candidate): 2}
	rebuilt := func(status verdict.Status, after time.Duration) signing.PublicKey {
		k := testKey(t)
		bundle{b.t, k, b.entry, b.wheel}.round([]verdict.Verdict{{Gate: reproducible, Status: status, Evidence: "libx.so: section .text", Remedy: "compare"}}, after)
		return k.Public()
	}
	verify := func() []string {
		t.Helper()
		_, checks := Verify(b.wheel, trust, Candidate)
		return wrong(checks)
	}
	few := func(n string) string {
		return "verdicts: second builds of " + n + ", and the trust file requires 2 for the channel candidate, without the key of the first build"
	}
	b.round([]verdict.Verdict{{Gate: reproducible, Status: verdict.Pass, Evidence: "equal"}}, time.Minute)
	check.Same(t, "the first builder alone", []string{few("0 keys agree (none)")}, verify())
	one := rebuilt(verdict.Pass, 2*time.Minute)
	trust.Keys = append(trust.Keys, one)
	check.Same(t, "one second build", []string{few("1 keys agree (" + one.String() + ")")}, verify())
	liar := rebuilt(verdict.Fail, 3*time.Minute)
	trust.Keys = append(trust.Keys, liar)
	lie := "verdicts: gate reproducible: fail: in the build of " + liar.String() + ": libx.so: section .text"
	check.Same(t, "other bytes last", []string{lie, few("1 keys agree (" + one.String() + ")")}, verify())
	trust.Keys = append(trust.Keys, rebuilt(verdict.Pass, 4*time.Minute))
	check.Same(t, "one of three has other bytes", []string{lie}, verify())
	trust.Rebuilders = nil
	got := verify()
	check.That(t, len(got) == 1, "other bytes count without a required number too: %q", got)
}

// Two keys with equal bytes are enough where two are required.
func TestEnoughSecondBuilds(t *testing.T) {
	b := newBundle(t)
	trust := b.trust()
	trust.Rebuilders = map[string]int{string(Candidate): 2}
	for i := range 2 {
		k := testKey(t)
		bundle{b.t, k, b.entry, b.wheel}.round([]verdict.Verdict{{Gate: reproducible, Status: verdict.Pass, Evidence: "equal"}}, time.Duration(i+2)*time.Minute)
		trust.Keys = append(trust.Keys, k.Public())
	}
	if _, checks := Verify(b.wheel, trust, Candidate); len(wrong(checks)) > 0 {
		t.Errorf("%q", wrong(checks))
	}
}
