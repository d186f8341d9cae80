package attest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestSignAgain(t *testing.T) {
	b := newBundle(t)
	gates, release := testKey(t), testKey(t)
	round := NewTestResult([]verdict.Verdict{{Gate: "nccl-tests", Status: verdict.Pass, Evidence: "seen"}}, b.entry.Key(), "1", nil, built.Add(time.Hour))
	must.Succeed(t, (Sealer{gates}).AddRound(b.wheel, round))
	of := func(keys ...signing.Key) signing.Trust {
		trust := signing.Trust{Now: built.Add(2 * time.Hour)}
		for _, k := range keys {
			trust.Keys = append(trust.Keys, k.Public())
		}
		return trust
	}
	before, err := Read(b.wheel, of(b.key, gates))
	must.Succeed(t, err)
	// Statements of a stranger are not signed, nor is anything beside them.
	if n, err := (Sealer{release}).SignAgain(b.wheel, of(b.key)); err == nil || n != 0 {
		t.Errorf("signed %d statements of a stranger", n)
	}
	_, err = Read(b.wheel, of(b.key, gates))
	check.That(t, err == nil, "%v", err)
	n, err := Sealer{release}.SignAgain(b.wheel, of(b.key, gates))
	must.Hold(t, err == nil && n == len(before.Documents), "signed %d of %d, %v", n, len(before.Documents), err)
	after, err := Read(b.wheel, of(release))
	check.That(t, err == nil && len(after.Rounds) == len(before.Rounds) && after.Provenance != nil && len(after.Keys) == 1,
		"%+v, %v", after.Keys, err)
	n, err = (Sealer{release}).SignAgain(b.wheel, of(release))
	check.That(t, n == 0 && err == nil, "signed %d again, %v", n, err)
	// Other bytes get no signature.
	must.Succeed(t, os.WriteFile(b.wheel.Path, []byte("other"), 0o644))
	other := b.wheel
	other.SHA256 = "0"
	n, err = (Sealer{gates}).SignAgain(other, of(release))
	check.That(t, n == 0 && err != nil, "signed %d statements about other bytes", n)
	must.Succeed(t, os.RemoveAll(filepath.Join(Dir(b.wheel.Path))))
	_, err = (Sealer{gates}).SignAgain(b.wheel, of(release))
	check.That(t, err != nil, "signed nothing without an error")
}
