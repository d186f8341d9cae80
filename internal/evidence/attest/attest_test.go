package attest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/sbomtest"
	"builder/test/kit/wheeltest"
)

var built = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testKey(t *testing.T) signing.Key {
	t.Helper()
	return must.Get(signing.NewKey())(t)
}

func testEntry() lock.Entry {
	file := func(project string) pypi.File {
		return pypi.File{Project: project, Version: "1.0", Filename: project + "-1.0.tar.gz", Size: 3, SHA256: strings.Repeat("a", 64)}
	}
	return lock.Entry{
		Schema: lock.EntrySchema, Recipe: "tool", ID: "tool-1.0", Axes: map[string]string{"version": "1.0"},
		Source:  lock.SourcePin{File: file("tool")},
		Patches: []patch.Patch{{Name: "seal", Reason: "because", Upstream: "https://example.com/1"}},
		Image: lock.Image{
			Pin:    lock.ImagePin{Name: "base", Packages: []deb.Package{{Name: "libc6", Version: "2.41-12", Architecture: "amd64", Path: "pool/main/g/glibc/libc6_2.41-12_amd64.deb", SHA256: strings.Repeat("b", 64)}}},
			Wheels: []pypi.File{file("numpy")},
		},
		Runtime: lock.Image{Wheels: []pypi.File{file("numpy")}},
		Epoch:   1700000000,
		Expect:  recipe.Expect{Packages: []string{"tool"}, Gates: recipe.GateSettings{"size": "1KB..1MB"}},
		Advisories: []recipe.Advisory{
			{ID: "CVE-2024-10190", About: "a", Source: "https://example.com/a", MendedBy: "seal", Remains: "a little", Action: "run"},
			{ID: "CVE-2026-31234", About: "b", Source: "https://example.com/b", MendedBy: "another", Action: "run"},
		},
	}
}

// bundle is a finished cell: a wheel with its SBOM inside, a file beside it, the entry,
// and the signed statements.
type bundle struct {
	t     *testing.T
	key   signing.Key
	entry lock.Entry
	wheel artifact.Artifact
}

func newBundle(t *testing.T) bundle {
	t.Helper()
	return newBundleOf(t, Build{Builder: Builder{ID: "urn:builder:local", Version: map[string]string{"builder": "v1"}}, Canary: `{"reached":[]}`})
}

func newBundleOf(t *testing.T, made Build) bundle {
	t.Helper()
	made.Started, made.Finished = built, built.Add(time.Minute)
	b := bundle{t, testKey(t), testEntry(), artifact.Artifact{}}
	dir := filepath.Join(t.TempDir(), b.entry.ID)
	must.Succeed(t, lock.WriteEntry(dir, b.entry))
	b.wheel = b.makeWheel(filepath.Join(dir, "tool-1.0-py3-none-any.whl"), "x = 1\n")
	beside := filepath.Join(dir, "tool.txz")
	must.Succeed(t, os.WriteFile(beside, []byte("archive"), 0o600))
	txz := must.Get(artifact.Of(beside, ""))(t)
	s := Sealer{b.key}
	must.Succeed(t, s.Seal([]artifact.Artifact{b.wheel, txz}, NewProvenance(b.entry, made)))
	b.round([]verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass, Evidence: "right"}, {Gate: "python-source", Status: verdict.Pass, Evidence: "right"}, {Gate: "size", Status: verdict.Pass, Evidence: "right"}, {Gate: "build-paths", Status: verdict.Pass, Evidence: "right"}}, 2*time.Minute)
	return b
}

// makeWheel writes a wheel with its SBOM inside, as the export of a build does.
func (b bundle) makeWheel(path, text string) artifact.Artifact {
	b.t.Helper()
	must.Succeed(b.t, sbomtest.Write(path, b.entry, wheeltest.File{Name: "tool/__init__.py", Text: text}))
	return must.Get(artifact.Of(path, b.entry.Key()))(b.t)
}

func (b bundle) round(verdicts []verdict.Verdict, after time.Duration) {
	b.t.Helper()
	must.Succeed(b.t, (Sealer{b.key}).AddRound(b.wheel, NewTestResult(verdicts, b.entry.Key(), "v1", nil, built.Add(after))))
}

func (b bundle) trust() signing.Trust {
	return signing.Trust{Keys: []signing.PublicKey{b.key.Public()}, Now: built.Add(time.Hour)}
}

func (b bundle) file(name string) string { return filepath.Join(Dir(b.wheel.Path), name) }

// verify verifies the current bytes of the wheel.
func (b bundle) verify(policy Policy) []Check {
	b.t.Helper()
	a := must.Get(artifact.Of(b.wheel.Path, ""))(b.t)
	_, checks := Verify(a, b.trust(), policy)
	return checks
}

// edit changes the file of a statement, including its payload.
func (b bundle) edit(name, was, is string) {
	b.t.Helper()
	data := must.Get(os.ReadFile(b.file(name)))(b.t)
	var doc map[string]any
	must.Succeed(b.t, json.Unmarshal(data, &doc))
	envelope := doc["dsseEnvelope"].(map[string]any)
	payload := must.Get(base64.StdEncoding.DecodeString(envelope["payload"].(string)))(b.t)
	changed := bytes.Replace(payload, []byte(was), []byte(is), 1)
	must.Hold(b.t, !bytes.Equal(changed, payload), "%q is not in %s", was, payload)
	envelope["payload"] = base64.StdEncoding.EncodeToString(changed)
	data = must.Get(json.Marshal(doc))(b.t)
	b.write(name, data)
}

func (b bundle) write(name string, data []byte) {
	b.t.Helper()
	must.Succeed(b.t, os.WriteFile(b.file(name), data, 0o600))
}

func (b bundle) remove(name string) {
	b.t.Helper()
	must.Succeed(b.t, os.Remove(b.file(name)))
}

// link replaces a file in the folder with a link to a file outside.
func (b bundle) link(name string) {
	b.t.Helper()
	target := filepath.Join(b.t.TempDir(), "secret")
	must.Succeed(b.t, os.WriteFile(target, []byte("-----BEGIN PRIVATE KEY-----"), 0o600))
	_ = os.Remove(b.file(name))
	must.Succeed(b.t, os.Symlink(target, b.file(name)))
}

func (b bundle) rounds() []string {
	b.t.Helper()
	found, err := filepath.Glob(b.file("verdicts-*"))
	must.Hold(b.t, err == nil && len(found) != 0, "%v, %v", found, err)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

func TestWhatARunLeavesVerifies(t *testing.T) {
	b := newBundle(t)
	checks := b.verify(Candidate)
	must.Hold(t, Passed(checks), "%+v", checks)
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
		check.That(t, c.Seen != "", "check %s says nothing", c.Name)
	}
	check.That(t, slices.Equal(names, []string{"signatures", "provenance", "artifacts", "sbom", "verdicts"}), "%v", names)
	got := must.Get(Read(b.wheel, b.trust()))(t)
	check.Same(t, "the entry of the provenance has the key", b.entry.Key(), got.Provenance.Definition.Internal.Entry.Key())
	check.That(t, !Passed(b.verify(Stable)), "stable without a second build")
	b.round([]verdict.Verdict{{Gate: "reproducible", Status: verdict.Pass, Evidence: "same"}}, 3*time.Minute)
	checks = b.verify(Stable)
	check.That(t, Passed(checks), "%+v", checks)
}

// A build that could take objects from the compiler cache counts after a second build
// without it, whatever number of hits the step reported.
func TestACompilerCacheNeedsASecondBuild(t *testing.T) {
	for _, hits := range []string{`{"hits":7,"misses":0}`, `{"hits":0,"misses":7}`} {
		b := newBundleOf(t, Build{Builder: Builder{ID: "urn:builder:local", Version: map[string]string{CompilerCache: "4"}}, Ccache: hits})
		got := must.Get(Read(b.wheel, b.trust()))(t)
		made := got.Provenance.Run.Byproducts
		check.That(t, len(made) == 1 && made[0].Name == CompilerCache && made[0].Content == base64.StdEncoding.EncodeToString([]byte(hits)),
			"the provenance has the byproducts %+v", made)
		const want = "compiler cache: the build could take objects from a compiler cache, and no second build without one has the same bytes"
		check.Same(t, "without a second build", []string{want}, wrong(b.verify(Candidate)))
		b.round([]verdict.Verdict{{Gate: reproducible, Status: verdict.NotMeasured, Evidence: "interrupted", Remedy: "again"}}, 3*time.Minute)
		if got := wrong(b.verify(Candidate)); !slices.Contains(got, want) {
			t.Errorf("with a second build that did not end: %q", got)
		}
		b.round([]verdict.Verdict{{Gate: reproducible, Status: verdict.Pass, Evidence: "same"}}, 4*time.Minute)
		if got := wrong(b.verify(Candidate)); len(got) > 0 {
			t.Errorf("with a second build: %q", got)
		}
	}
}

// TestTampering backs the threat model in docs/trust.md. A change of any part without the key
// must be detected, with its reason.
func TestTampering(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(b bundle)
		check string
		says  string
	}{
		"the wheel is replaced": {func(b bundle) { b.makeWheel(b.wheel.Path, "x = 2\n") }, "signatures", "the statement is about other bytes"},
		"the archive is replaced": {func(b bundle) {
			must.Succeed(b.t, os.WriteFile(filepath.Join(filepath.Dir(b.wheel.Path), "tool.txz"), []byte("Archive"), 0o600))
		}, "artifacts", "tool.txz has sha256"},
		"the entry is changed": {func(b bundle) {
			must.Succeed(b.t, os.WriteFile(filepath.Join(filepath.Dir(b.wheel.Path), lock.EntryFile), []byte("{}"), 0o600))
		}, "artifacts", "entry.json has sha256"},
		"a material is changed":      {func(b bundle) { b.edit("provenance.sigstore.json", strings.Repeat("b", 64), strings.Repeat("c", 64)) }, "signatures", "the signature is invalid"},
		"the subject is changed":     {func(b bundle) { b.edit("provenance.sigstore.json", b.wheel.SHA256, strings.Repeat("0", 64)) }, "signatures", "the signature is invalid"},
		"the builder is changed":     {func(b bundle) { b.edit("provenance.sigstore.json", "urn:builder:local", "urn:builder:other") }, "signatures", "the signature is invalid"},
		"a verdict is changed":       {func(b bundle) { b.edit(b.rounds()[0], `"status":"pass"`, `"status":"waived"`) }, "signatures", "the signature is invalid"},
		"the SBOM is changed":        {func(b bundle) { b.edit("sbom.sigstore.json", "SPDX-2.3", "SPDX-2.2") }, "signatures", "the signature is invalid"},
		"an SBOM that nobody signed": {func(b bundle) { b.write("sbom.spdx.json", []byte("{}")) }, "signatures", "sbom.spdx.json: it is unsigned"},
		"the provenance is removed":  {func(b bundle) { os.Remove(b.file("provenance.sigstore.json")) }, "provenance", "no trusted key signed a provenance"},
		"the SBOM is removed":        {func(b bundle) { os.Remove(b.file("sbom.sigstore.json")) }, "sbom", "no trusted key signed an SBOM of this artifact"},
		"the verdicts are removed":   {func(b bundle) { os.Remove(b.file(b.rounds()[0])) }, "verdicts", "gate wheel-format did not run, and the policy candidate requires it"},
		"everything is removed":      {func(b bundle) { os.RemoveAll(Dir(b.wheel.Path)) }, "signatures", "is missing"},
		"the folder is empty":        {func(b bundle) { os.RemoveAll(Dir(b.wheel.Path)); os.Mkdir(Dir(b.wheel.Path), 0o755) }, "signatures", "holds no statement"},
		"a statement is cut":         {func(b bundle) { b.write("sbom.sigstore.json", []byte(`{"mediaType"`)) }, "signatures", "sbom.sigstore.json: it is not a Sigstore bundle"},
		"a statement is a folder":    {func(b bundle) { os.Mkdir(b.file("x.sigstore.json"), 0o755) }, "signatures", "x.sigstore.json: "},
		"the verdicts belong to another artifact": {func(b bundle) {
			other := newBundle(b.t)
			other.key = b.key // the same signer, other bytes
			other.wheel = other.makeWheel(other.wheel.Path, "x = 3\n")
			other.round([]verdict.Verdict{{Gate: "size", Status: verdict.Pass}}, 9*time.Minute)
			data := must.Get(os.ReadFile(other.file(other.rounds()[1])))(b.t)
			b.write("verdicts-other.sigstore.json", data)
		}, "signatures", "verdicts-other.sigstore.json: the statement is about other bytes"},
		"an untrusted key signed the provenance": {func(b bundle) {
			stranger := b
			stranger.key = testKey(b.t)
			must.Succeed(b.t, (Sealer{stranger.key}).Seal([]artifact.Artifact{b.wheel}, NewProvenance(b.entry, Build{})))
		}, "signatures", "an untrusted key signed it"},
		"a second provenance is added": {func(b bundle) {
			data := must.Get(os.ReadFile(b.file("provenance.sigstore.json")))(b.t)
			b.write("again.sigstore.json", data)
		}, "signatures", "more than one " + ProvenanceType},
		"a gate refused later": {func(b bundle) {
			b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Fail, Evidence: "too small"}}, 5*time.Minute)
		}, "verdicts", "gate size: fail: too small"},
		"an older pass is added": {func(b bundle) {
			b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Fail, Evidence: "too small"}}, 5*time.Minute)
			b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Pass}}, time.Minute)
		}, "verdicts", "gate size: fail: too small"},
		"a page lies among the statements": {func(b bundle) { b.write("evil.html", []byte("<script>")) }, "signatures", "evil.html: it is unsigned, and this folder may hold only signed files: remove it"},
		"a link lies among the statements": {func(b bundle) { b.link("id_rsa") }, "signatures", "id_rsa: it is unsigned"},
		"a link replaces a statement":      {func(b bundle) { b.link("x.sigstore.json") }, "signatures", "a symbolic link"},
		"a pipe replaces a statement": {func(b bundle) {
			must.Succeed(b.t, syscall.Mkfifo(b.file("x.sigstore.json"), 0o600))
		}, "signatures", "a named pipe"},
		"a link replaces the folder": {func(b bundle) {
			elsewhere := filepath.Join(b.t.TempDir(), "elsewhere")
			must.Succeed(b.t, os.Rename(Dir(b.wheel.Path), elsewhere), os.Symlink(elsewhere, Dir(b.wheel.Path)))
		}, "signatures", "is not a directory"},
		"a link replaces the archive": {func(b bundle) {
			path := filepath.Join(filepath.Dir(b.wheel.Path), "tool.txz")
			elsewhere := filepath.Join(b.t.TempDir(), "elsewhere")
			must.Succeed(b.t, os.Rename(path, elsewhere), os.Symlink(elsewhere, path))
		}, "artifacts", "a symbolic link"},
		"a link takes the place of the entry": {func(b bundle) {
			path := filepath.Join(filepath.Dir(b.wheel.Path), lock.EntryFile)
			must.Succeed(b.t, os.Remove(path), os.Symlink("/dev/null", path))
		}, "artifacts", "a symbolic link"},
		"a gate waives itself": {func(b bundle) {
			b.round([]verdict.Verdict{{Gate: "size", Status: verdict.Waived, Evidence: "never mind"}}, 5*time.Minute)
		}, "verdicts", "gate size: fail"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBundle(t)
			c.do(b)
			checks := b.verify(Candidate)
			must.Hold(t, !Passed(checks), "it passes: %+v", checks)
			i := indexOf(checks, c.check)
			check.That(t, i >= 0 && strings.Contains(strings.Join(checks[i].Wrong, "\n"), c.says),
				"%+v; want %s: %q", checks, c.check, c.says)
		})
	}
}

// If the artifact was replaced, no key is missing: only its digest is wrong, which is one
// problem of all statements.
func TestAReplacedArtifactNeedsNoOtherKey(t *testing.T) {
	b := newBundle(t)
	b.makeWheel(b.wheel.Path, "x = 2\n")
	checks := b.verify(Candidate)
	check.That(t, len(checks) == 1 && checks[0].Name == "signatures" && checks[0].Remedy == changed && len(checks[0].Wrong) == 1,
		"%+v", checks)
}

// A gate whose verdict has the signature of an unknown key did run.
func TestAnUntrustedVerdictIsNoMissingOne(t *testing.T) {
	b := newBundle(t)
	must.Succeed(t, os.Remove(b.file(b.rounds()[0])))
	other := b
	other.key = testKey(t)
	other.round([]verdict.Verdict{{Gate: "wheel-format", Status: verdict.Pass}}, time.Minute)
	checks := b.verify(Candidate)
	i := indexOf(checks, "verdicts")
	check.That(t, i >= 0 && strings.Contains(strings.Join(checks[i].Wrong, ";"), "no trusted key signed a verdict of gate wheel-format") && checks[i].Remedy == stranger,
		"%+v", checks)
}

// The gates refused what lies in the folder of rejected artifacts, so nothing was signed.
func TestARejectedArtifactHasNoStatements(t *testing.T) {
	a := artifact.Artifact{Name: "a.whl", Path: filepath.Join(t.TempDir(), artifact.RejectedDir, "a.whl")}
	_, checks := Verify(a, signing.Trust{}, Candidate)
	check.That(t, len(checks) == 1 && strings.Contains(checks[0].Remedy, "gates refused this artifact"), "%+v", checks)
}

// The name of a wheel states its platform. Installers treat the same bytes under
// another name as another wheel.
func TestAWheelOfAnotherNameDoesNotVerify(t *testing.T) {
	for _, name := range []string{"tool-1.0-cp312-cp312-manylinux_2_17_x86_64.whl", "tool-1.0-py3-none-linux_aarch64.whl", "requests-1.0-py3-none-any.whl", "TOOL-1.0-py3-none-any.whl"} {
		b := newBundle(t)
		to := filepath.Join(filepath.Dir(b.wheel.Path), name)
		must.Succeed(t, os.Rename(b.wheel.Path, to), os.Rename(Dir(b.wheel.Path), Dir(to)))
		b.wheel.Path = to
		checks := b.verify(Candidate)
		want := "the statement is about tool-1.0-py3-none-any.whl, the artifact is named " + name + ": restore the name of the artifact"
		check.That(t, !Passed(checks) && strings.Contains(strings.Join(checks[0].Wrong, "\n"), want), "%s: %+v", name, checks)
	}
}

// Said lists exactly the verified bytes: its digests match the checked files, and it
// leaves out temporary files.
func TestWhatIsHandedOnIsWhatWasChecked(t *testing.T) {
	b := newBundle(t)
	b.write(".verdicts.sigstore.json.123.tmp", []byte("half"))
	got := must.Get(Read(b.wheel, b.trust()))(t)
	want := []string{"provenance.sigstore.json", "sbom.sigstore.json", b.rounds()[0]}
	var names []string
	for _, a := range got.Files() {
		names = append(names, a.Name)
		have, err := artifact.Of(a.Path, "")
		check.That(t, err == nil && have == a, "%+v is %+v, %v", a, have, err)
	}
	check.Same(t, "names", want, names)
	for _, s := range got.Artifacts {
		check.That(t, s.Annotations.Size > 0, "%s has no signed size", s.Name)
	}
}

// A valid signature does not cover up a contradiction.
func TestProvenanceThatContradictsItself(t *testing.T) {
	good := NewProvenance(testEntry(), Build{})
	problem := good.problem()
	must.Hold(t, problem == "", "%v", problem)
	for says, change := range map[string]func(*Provenance){
		"its build type is":     func(p *Provenance) { p.Definition.BuildType = "x" },
		"its entry has the key": func(p *Provenance) { p.Definition.Internal.Entry.Script = "make evil" },
		"it names the cell":     func(p *Provenance) { p.Definition.External.Cell = "x" },
		"its materials differ":  func(p *Provenance) { p.Definition.Materials = p.Definition.Materials[1:] },
		"has the schema 0":      func(p *Provenance) { p.Definition.Internal.Entry.Schema = 0 },
	} {
		p := NewProvenance(testEntry(), Build{})
		change(&p)
		problem := p.problem()
		check.That(t, strings.Contains(problem, says), "%q, want %q", problem, says)
	}
}

func TestMaterialsAreEverything(t *testing.T) {
	var uris []string
	for _, m := range materials(testEntry()) {
		uris = append(uris, m.URI)
		check.That(t, len(m.Digest["sha256"]) == 64, "%+v has no digest", m)
	}
	want := []string{"pkg:deb/debian/libc6@2.41-12?arch=amd64", "pkg:pypi/numpy@1.0", "urn:builder:patch:tool:seal", "pkg:pypi/tool@1.0"}
	check.Same(t, "uris", want, uris)
}

func TestTestResultFollowsTheVerdicts(t *testing.T) {
	v := func(name string, s verdict.Status) verdict.Verdict { return verdict.Verdict{Gate: name, Status: s} }
	for want, verdicts := range map[string][]verdict.Verdict{
		"PASSED a||":  {v("a", verdict.Pass)},
		"WARNED a|b|": {v("a", verdict.Pass), v("b", verdict.Waived)},
		"FAILED |b|a": {v("a", verdict.Fail), v("b", verdict.Waived)},
		"FAILED ||a":  {v("a", verdict.NotMeasured)},
		"FAILED ||":   nil,
	} {
		r := NewTestResult(verdicts, "", "v1", nil, built)
		got := r.Result + " " + strings.Join(r.Passed, ",") + "|" + strings.Join(r.Warned, ",") + "|" + strings.Join(r.Failed, ",")
		check.That(t, got == want, "%s, want %s", got, want)
	}
}

// A refusal counts as waived if the entry waives it, even if the host that ran the gate
// had no entry.
func TestJudged(t *testing.T) {
	e := testEntry()
	e.Expect.Waivers = []recipe.Waiver{{Gate: "size", Because: "known", Issue: "https://example.com/2", Until: "2999-01-01"}}
	p := NewProvenance(e, Build{})
	b := Bundle{Provenance: &p, Rounds: []TestResult{NewTestResult([]verdict.Verdict{{Gate: "size", Status: verdict.Fail}}, e.Key(), "v1", nil, built)}}
	all := b.Judged(built)
	check.That(t, len(all) == 1 && all[0].Status == verdict.Waived, "%+v", all)
	b.Provenance = nil
	all = b.Judged(built)
	check.That(t, len(all) == 1 && all[0].Status == verdict.Fail, "without an entry: %+v", all)
}

// wrong lists all problems of checks.
func wrong(checks []Check) (all []string) {
	for _, c := range checks {
		for _, w := range c.Wrong {
			all = append(all, c.Name+": "+w)
		}
	}
	return all
}

// The first look at a wheel of somebody else is one sentence: whose key it is, and what to
// do.
func TestFirstContact(t *testing.T) {
	b := newBundle(t)
	b.key = testKey(t)
	p := NewProvenance(b.entry, Build{Builder: Builder{ID: "urn:builder:local"}, Started: built, Finished: built.Add(time.Minute)})
	must.Succeed(t, (Sealer{b.key}).Seal([]artifact.Artifact{b.wheel}, p))
	_, checks := Verify(b.wheel, signing.Trust{Keys: []signing.PublicKey{testKey(t).Public()}, Now: built}, Candidate)
	want := "signatures: provenance.sigstore.json and 1 more: an untrusted key signed it: " + b.key.Public().ID
	got := wrong(checks)
	check.That(t, len(got) == 1 && got[0] == want, "%q, want %q", got, want)
	check.That(t, len(checks) == 1 && checks[0].Remedy == stranger, "%+v", checks)
}
