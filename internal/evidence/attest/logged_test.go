package attest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"builder/internal/evidence/signing"
	"builder/internal/evidence/translog"
	"builder/internal/gates/verdict"
)

// A testLog is a log of one publisher.
type testLog struct {
	*translog.Log
	t   *testing.T
	key note.Signer
}

func newTestLog(t *testing.T) testLog {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, "example.com/builds")
	if err != nil {
		t.Fatal(err)
	}
	key, err1 := note.NewSigner(private)
	verifier, err2 := note.NewVerifier(public)
	dir := t.TempDir()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := translog.Create(dir, key); err != nil {
		t.Fatal(err)
	}
	return testLog{&translog.Log{Place: dir, Key: verifier, Memory: t.TempDir()}, t, key}
}

func (l testLog) add(leaves ...translog.Leaf) {
	l.t.Helper()
	if _, err := l.Append(l.t.Context(), l.key, leaves); err != nil {
		l.t.Fatal(err)
	}
	l.Forget()
}

// logged returns a bundle whose statements a log holds, and a trust that asks for them.
func logged(t *testing.T) (bundle, testLog, signing.Trust) {
	t.Helper()
	b, l := newBundle(t), newTestLog(t)
	trust := b.trust()
	said, err := Read(b.wheel, trust)
	if err != nil {
		t.Fatal(err)
	}
	l.add(said.Leaves(b.wheel)...)
	trust.Logs = []*translog.Log{l.Log}
	return b, l, trust
}

// The removal of any statement is refused, of a later refusal too.
func TestRemovedStatements(t *testing.T) {
	b, l, trust := logged(t)
	b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Fail, Evidence: "too big"}}, 3*time.Minute)
	said, err := Read(b.wheel, trust)
	if err != nil {
		t.Fatal(err)
	}
	if got := said.Refusals(b.wheel, trust); len(got) != 1 || !strings.HasPrefix(got[0].Name, "verdicts-20261121T120300Z-") {
		t.Fatalf("%+v", got)
	}
	l.add(said.Refusals(b.wheel, trust)...)
	b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Pass, Evidence: "right"}}, 4*time.Minute)
	said, err = Read(b.wheel, trust)
	if err != nil {
		t.Fatal(err)
	}
	if got := said.Refusals(b.wheel, trust); got != nil {
		t.Errorf("a refusal after the pass: %+v", got)
	}
	l.add(said.Leaves(b.wheel)...)
	if _, checks := Verify(b.wheel, trust, Candidate); !Passed(checks) || !strings.HasPrefix(checks[len(checks)-1].Seen, "7 statements and no other in the log example.com/builds at ") {
		t.Fatalf("%+v", checks)
	}
	for _, d := range said.Documents {
		data, err := os.ReadFile(b.file(d.Name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(b.file(d.Name)); err != nil {
			t.Fatal(err)
		}
		_, checks := Verify(b.wheel, trust, Candidate)
		want := "is missing here: " + d.Name + " with sha256 " + d.SHA256 + ", logged on "
		if got := wrong(checks); !slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "log: ") && strings.Contains(w, want) }) {
			t.Errorf("%s: %q", d.Name, got)
		}
		if err := os.WriteFile(b.file(d.Name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A statement that the limits of its key forbid is present: only the limits are reported.
func TestForbiddenStatementsAreNotMissing(t *testing.T) {
	b, _, trust := logged(t)
	trust.Keys[0].Grant = signing.Grant{File: "trust.yaml", Roles: []signing.Role{signing.Maker}}
	_, checks := Verify(b.wheel, trust, Candidate)
	got := wrong(checks)
	if len(got) < 2 || slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, "log: ") }) {
		t.Errorf("%q", got)
	}
}

func TestLogRefuses(t *testing.T) {
	mark := func(b bundle, kind, because string) translog.Leaf {
		return translog.Leaf{Kind: kind, Subject: b.wheel.SHA256, Name: b.wheel.Name, Because: because}
	}
	for name, c := range map[string]struct {
		do   func(bundle, testLog)
		says string // "" if it passes
	}{
		"nothing": {func(bundle, testLog) {}, ""},
		"a statement about another": {func(b bundle, l testLog) {
			l.add(translog.Leaf{Kind: TestResultType, Subject: strings.Repeat("0", 64), Statement: "x", Name: "x"})
		}, ""},
		"a second builder's SBOM": {func(b bundle, l testLog) {
			l.add(translog.Leaf{Kind: VEXType, Subject: b.wheel.SHA256, Statement: "x", Name: "x"})
		}, ""},
		"a statement nobody logged": {func(b bundle, l testLog) { b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Pass}}, time.Hour) }, " lacks verdicts-"},
		"a kind that is missing": {func(b bundle, l testLog) {
			l.add(translog.Leaf{Kind: "new", Subject: b.wheel.SHA256, Statement: "x", Name: "n"})
		}, "is missing here: n with sha256 x"},
		"a withdrawal":               {func(b bundle, l testLog) { l.add(mark(b, translog.Yank, "wrong sums")) }, "says that it was withdrawn: wrong sums"},
		"a withdrawal that was over": {func(b bundle, l testLog) { l.add(mark(b, translog.Yank, "x"), mark(b, translog.Unyank, "")) }, ""},
		"no log": {func(b bundle, l testLog) {
			if err := os.Remove(filepath.Join(l.Place, "checkpoint")); err != nil {
				t.Fatal(err)
			}
		}, "does not exist"},
	} {
		b, l, trust := logged(t)
		c.do(b, l)
		_, checks := Verify(b.wheel, trust, Candidate)
		said, err := list(Dir(b.wheel.Path))
		if err != nil {
			t.Fatal(err)
		}
		_, fewer := VerifyStatements(b.wheel, said, trust, Candidate)
		for _, checks := range [][]Check{checks, fewer} {
			last := checks[len(checks)-1]
			if last.Name != "log" || (c.says == "") != Passed(checks) || !strings.Contains(strings.Join(last.Wrong, "\n"), c.says) {
				t.Errorf("%s: %+v", name, checks)
			}
			if withdrawn := strings.Contains(c.says, "withdrawn"); withdrawn != strings.HasPrefix(last.Remedy, "do not use it") {
				t.Errorf("%s: %s", name, last.Remedy)
			}
		}
	}
}
