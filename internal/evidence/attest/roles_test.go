package attest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
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

// verifyAs verifies the wheel with limits on the key of the bundle.
func (b bundle) verifyAs(g signing.Grant, more ...signing.PublicKey) []string {
	trust := b.trust()
	g.File = "trust.yaml"
	trust.Keys[0].Grant = g
	trust.Keys = append(trust.Keys, more...)
	_, checks := Verify(b.wheel, trust, Candidate)
	return wrong(checks)
}

// A key counts for its roles, recipes, channels, gates and age alone. The error names
// the key, the file and the limit.
func TestLimitsOfKeys(t *testing.T) {
	b := newBundle(t)
	both := []signing.Role{signing.Maker, signing.GateHost}
	for name, g := range map[string]signing.Grant{
		"no limit":             {},
		"its roles":            {Roles: both},
		"every limit suffices": {Roles: both, Recipes: []string{"tool"}, Channels: []string{"candidate"}, Gates: []string{"wheel-format", "python-source", "size", "build-paths"}, Age: time.Hour},
	} {
		if got := b.verifyAs(g); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, c := range map[string]struct {
		g    signing.Grant
		says string
	}{
		"the key may not build":           {signing.Grant{Roles: []signing.Role{signing.GateHost}}, "signatures: provenance.sigstore.json, sbom.sigstore.json: it is signed by key " + b.key.Public().ID + ", which trust.yaml limits: it has the role gates, and not the role builder"},
		"the key may not judge":           {signing.Grant{Roles: []signing.Role{signing.Maker}}, "it has the role builder, and not the role gates: it has a verdict of wheel-format"},
		"the key may not judge this gate": {signing.Grant{Gates: []string{"python-source", "size", "build-paths"}}, "it may judge python-source, size, build-paths, and not wheel-format"},
		"a verdict that does not count":   {signing.Grant{Roles: []signing.Role{signing.Maker}}, "verdicts: the verdict of gate wheel-format does not count, because the limits of its key forbid it, and the policy candidate requires one"},
		"another recipe":                  {signing.Grant{Recipes: []string{"other"}}, "provenance: it is signed by key " + b.key.Public().ID + ", which trust.yaml limits: it may sign for other, and not for the recipe tool"},
		"another channel":                 {signing.Grant{Channels: []string{"stable"}}, "it may sign for the channel stable, and not for candidate"},
		"the build is too old":            {signing.Grant{Age: time.Minute}, "and this one is of 2026-11-21"},
	} {
		if got := b.verifyAs(c.g); !slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, c.says) }) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The remedy for a key without the right is the item to add to its list in the trust
// file. A verdict that the limits forbid needs no second remedy.
func TestRemediesForLimitsOfKeys(t *testing.T) {
	b := newBundle(t)
	for _, c := range []struct {
		g                signing.Grant
		signatures, sbom string
	}{
		{signing.Grant{Roles: []signing.Role{signing.GateHost}}, "if KEY may sign that, add builder to its roles in trust.yaml", "if KEY may sign that, add builder to its roles in trust.yaml"},
		{signing.Grant{Roles: []signing.Role{signing.Maker}}, "if KEY may sign that, add gates to its roles in trust.yaml", ""},
		{signing.Grant{Gates: []string{"python-source", "size", "build-paths"}}, "if KEY may sign that, add wheel-format to its gates in trust.yaml", ""},
	} {
		trust := b.trust()
		c.g.File = "trust.yaml"
		trust.Keys[0].Grant = c.g
		_, checks := Verify(b.wheel, trust, Candidate)
		for _, got := range checks {
			want := map[string]string{"signatures": c.signatures, "provenance": c.sbom, "sbom": c.sbom}[got.Name]
			if want = strings.ReplaceAll(want, "KEY", b.key.Public().String()); got.Name != "artifacts" && got.Remedy != want {
				t.Errorf("%+v: %s: %q, want %q", c.g, got.Name, got.Remedy, want)
			}
		}
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
		k.Grant = signing.Grant{File: "trust.yaml", Roles: roles}
		return k
	}
	if got := b.verifyAs(signing.Grant{}, of(signing.Rebuilder)); len(got) > 0 {
		t.Errorf("%q", got)
	}
	got := b.verifyAs(signing.Grant{}, of(signing.GateHost, signing.Maker))
	if len(got) != 1 || !strings.Contains(got[0], "it has the role gates, builder, and not the role rebuilder: it has a verdict of reproducible") {
		t.Errorf("%q", got)
	}
}

// A key with limits signs nothing that no role covers.
func TestNoRoleCoversAnUnknownStatement(t *testing.T) {
	b := newBundle(t)
	if err := (Sealer{b.key}).write(Dir(b.wheel.Path), "more.sigstore.json", []artifact.Artifact{b.wheel}, "urn:example:more", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if got := b.verifyAs(signing.Grant{}); len(got) > 0 {
		t.Errorf("%q", got)
	}
	got := b.verifyAs(signing.Grant{Roles: []signing.Role{signing.Maker, signing.GateHost, signing.Rebuilder}})
	if len(got) != 1 || !strings.Contains(got[0], "no role covers a statement of the type urn:example:more") {
		t.Errorf("%q", got)
	}
}

// The first look at a wheel of somebody else is one sentence: whose key it is, and what to
// do.
func TestFirstContact(t *testing.T) {
	b := newBundle(t)
	b.key = testKey(t)
	p := NewProvenance(b.entry, Build{Builder: Builder{ID: "urn:builder:local"}, Started: built, Finished: built.Add(time.Minute)})
	if err := (Sealer{b.key}).Seal([]artifact.Artifact{b.wheel}, p); err != nil {
		t.Fatal(err)
	}
	_, checks := Verify(b.wheel, signing.Trust{Keys: []signing.PublicKey{testKey(t).Public()}, Now: built}, Candidate)
	want := "signatures: provenance.sigstore.json and 1 more: an untrusted key signed it: " + b.key.Public().ID
	if got := wrong(checks); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	if len(checks) != 1 || checks[0].Remedy != stranger {
		t.Errorf("%+v", checks)
	}
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
	if got := verify(); !slices.Equal(got, []string{few("0 keys agree (none)")}) {
		t.Errorf("the first builder alone: %q", got)
	}
	one := rebuilt(verdict.Pass, 2*time.Minute)
	trust.Keys = append(trust.Keys, one)
	if got := verify(); !slices.Equal(got, []string{few("1 keys agree (" + one.String() + ")")}) {
		t.Errorf("one second build: %q", got)
	}
	liar := rebuilt(verdict.Fail, 3*time.Minute)
	trust.Keys = append(trust.Keys, liar)
	lie := "verdicts: gate reproducible: fail: in the build of " + liar.String() + ": libx.so: section .text"
	if got := verify(); !slices.Equal(got, []string{lie, few("1 keys agree (" + one.String() + ")")}) {
		t.Errorf("other bytes last: %q", got)
	}
	trust.Keys = append(trust.Keys, rebuilt(verdict.Pass, 4*time.Minute))
	if got := verify(); !slices.Equal(got, []string{lie}) {
		t.Errorf("one of three has other bytes: %q", got)
	}
	trust.Rebuilders = nil
	if got := verify(); len(got) != 1 {
		t.Errorf("other bytes count without a required number too: %q", got)
	}
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
