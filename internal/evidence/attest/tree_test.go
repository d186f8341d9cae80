package attest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// newTree returns a cell with an archive as its artifact.
func newTree(t *testing.T) bundle {
	t.Helper()
	b := bundle{t, testKey(t), testEntry(), artifact.Artifact{}}
	b.entry.Expect = recipe.Expect{Tree: "tool-1.0.tar.gz", Version: "1.0"}
	path := must.File(t, b.entry.Expect.Tree, "archive")
	b.wheel = must.Get(artifact.Of(path, b.entry.Key()))(t)
	p := NewProvenance(b.entry, Build{Builder: Builder{ID: "urn:builder:local"}, Started: built, Finished: built})
	must.Succeed(t, (Sealer{b.key}).Seal([]artifact.Artifact{b.wheel}, p))
	b.round([]verdict.Verdict{{Gate: "changes", Status: verdict.Pass, Evidence: "right"}}, 0)
	return b
}

func TestVerifyATree(t *testing.T) {
	b := newTree(t)
	checks := b.verify(Candidate)
	must.Hold(t, Passed(checks), "%+v", checks)
	i := indexOf(checks, "sbom")
	check.That(t, i >= 0 && strings.HasSuffix(checks[i].Seen, "signed for this archive"), "%+v", checks)
	said, err := Read(b.wheel, b.trust())
	check.That(t, err == nil && strings.Contains(string(said.SBOM), b.wheel.SHA256), "the SBOM does not name the archive: %v\n%s", err, said.SBOM)
}

// An archive contains no SBOM for comparison, so only the signatures count. Other
// bytes, and a document not signed for these bytes, are refused.
func TestVerifyATreeThatIsNotWhatWasSigned(t *testing.T) {
	b := newTree(t)
	other := newTree(t)
	must.Succeed(t, os.Rename(other.file("sbom"+suffix), b.file("sbom"+suffix)))
	checks := b.verify(Candidate)
	check.That(t, !Passed(checks), "with the SBOM of another key: %+v", checks)
	b = newTree(t)
	must.Succeed(t, os.WriteFile(b.wheel.Path, []byte("another"), 0o600))
	checks = b.verify(Candidate)
	check.That(t, !Passed(checks), "with other bytes: %+v", checks)
}

func indexOf(checks []Check, name string) int {
	return slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
}
