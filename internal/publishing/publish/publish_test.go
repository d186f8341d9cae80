package publish

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
	"builder/test/kit/wheeltest"
)

// bundle returns a bundle as Load would return it for a wheel of the given version. Its
// provenance and its round of gates have dummy contents, which these tests do not read.
func bundle(t *testing.T, version string) Bundle {
	t.Helper()
	path := wheeltest.Wheel{
		Name:  "tool-" + version + "-cp311-cp311-manylinux_2_36_x86_64.whl",
		Files: []wheeltest.File{{Name: "tool/__init__.py", Text: "version = '" + version + "'\n"}},
	}.Write(t)
	a := must.Get(artifact.Of(path, ""))(t)
	b := Bundle{
		Wheel: a, Entry: lock.Entry{ID: "tool-" + version, Recipe: "tool", Axes: map[string]string{"version": version}},
		Verdicts: []verdict.Verdict{{Gate: "size", Status: verdict.Pass}},
	}
	b.Said = said(t, a, version, attest.ProvenanceType, attest.TestResultType)
	must.Succeed(t, b.readMetadata())
	return b
}

// said writes files in an artifact's folder of statements, one of each type and without a
// signature.
func said(t *testing.T, a artifact.Artifact, text string, types ...string) (all []attest.Document) {
	t.Helper()
	dir := attest.Dir(a.Path)
	must.Succeed(t, os.Mkdir(dir, 0o755))
	for _, predicate := range types {
		file := filepath.Join(dir, fmt.Sprintf("%x.sigstore.json", predicate))
		must.Succeed(t, os.WriteFile(file, []byte(predicate+text), 0o600))
		f := must.Get(artifact.Of(file, ""))(t)
		all = append(all, attest.Document{Artifact: f, PredicateType: predicate})
	}
	return all
}

// anything is a vet that admits every offered file.
func anything(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil }

// taken fetches without verification.
func taken(_ string, bring func(index.Vet) (string, error)) (Bundle, error) {
	path, err := bring(anything)
	if err != nil {
		return Bundle{}, err
	}
	a, err := artifact.Of(path, "")
	return Bundle{Wheel: a}, err
}

func put(t *testing.T, to Destination, b Bundle, channel string) Receipt {
	t.Helper()
	return must.Get(to.Put(t.Context(), b, channel, nil))(t)
}

func list(t *testing.T, at Index) []index.Record {
	t.Helper()
	return must.Get(at.List(t.Context()))(t)
}

// catalogues returns one empty catalogue of each kind.
func catalogues(t *testing.T) map[string]Catalogue {
	t.Helper()
	places := map[string]string{"directory": "file:" + t.TempDir()}
	for name, referrers := range map[string]bool{"registry": true, "registry without referrers": false} {
		address, stop := ocitest.Serve(referrers)
		t.Cleanup(stop)
		places[name] = address
	}
	all := map[string]Catalogue{}
	for name, text := range places {
		c := must.Get(Open[Catalogue](text, Options{}))(t)
		all[name] = c
	}
	return all
}

func TestCatalogues(t *testing.T) {
	for name, place := range catalogues(t) {
		t.Run(name, func(t *testing.T) {
			one, two := bundle(t, "1.0"), bundle(t, "2.0+rocm5.7")
			check.That(t, !put(t, place, one, "candidate").Existed, "it was there before")
			put(t, place, two, "candidate")
			check.That(t, put(t, place, two, "stable").Existed, "it was not there the second time")
			for cell, want := range map[string]Published{
				one.Entry.Key(): {"tool-1.0", one.Entry.Key(), []string{"candidate"}},
				two.Entry.ID:    {"tool-2.0+rocm5.7", two.Entry.Key(), []string{"candidate", "stable"}},
			} {
				found := must.Get(place.Find(t.Context(), cell))(t)
				check.Same(t, cell, want, found)
			}
			_, err := place.Bring(t.Context(), bundle(t, "3.0").Entry.Key(), t.TempDir(), anything)
			check.That(t, errors.Is(err, index.ErrNotPublished), "%v", err)
			_, err = place.Find(t.Context(), "tool-1.1")
			check.That(t, diag.CodeOf(err) == diag.Usage, "%v", err)

			path := must.Get(place.Bring(t.Context(), one.Entry.Key(), filepath.Join(t.TempDir(), "taken"), anything))(t)
			said, err := os.ReadDir(attest.Dir(path))
			check.That(t, err == nil && len(said) == 2, "came with it: %v, %v", said, err)
		})
	}
}

// registry returns an empty repository of a registry with the referrers API.
func registry(t *testing.T) Registry {
	t.Helper()
	address, stop := ocitest.Serve(true)
	t.Cleanup(stop)
	return must.Get(Open[Registry](address, Options{}))(t)
}

// oras, crane and cosign show these tags and annotations.
func TestRegistryNames(t *testing.T) {
	place := registry(t)
	b := bundle(t, "1.0+rocm5.7")
	put(t, place, b, "candidate")
	want := []string{"key-" + b.Entry.Key(), "tool-1.0_rocm5.7", "tool-1.0_rocm5.7-candidate"}
	long := tagOf(strings.Repeat("x", 200) + "-candidate")
	check.That(t, len(long) == 128 && long != tagOf(strings.Repeat("x", 200)+"-stable"), "%s", long)
	digest := must.Get(place.Resolve(t.Context(), want[0]))(t)
	for _, tag := range want[1:] {
		same, err := place.Resolve(t.Context(), tag)
		check.That(t, err == nil && same == digest, "%s names %s, %v", tag, same, err)
	}
	all := must.Get(place.Referrers(t.Context(), digest))(t)
	var says []string
	for _, ref := range all {
		says = append(says, ref.Annotations[saysNote])
	}
	slices.Sort(says)
	check.Same(t, "predicate types", []string{attest.TestResultType, attest.ProvenanceType}, says)
}

// A tag of a cell that names something else is an error.
func TestRegistryThatLies(t *testing.T) {
	place := registry(t)
	other := bundle(t, "2.0")
	p := other.ociPackage()
	p.ArtifactType = "application/x-other"
	digest := must.Get(place.Push(t.Context(), p))(t)
	must.Succeed(t, place.Tag(t.Context(), digest, keyTag(other.Entry.Key()), false))
	if _, err := place.Find(t.Context(), other.Entry.Key()); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "has the tag of a published cell, but is not one") {
		t.Errorf("%v", err)
	}
}

// A real pip installs the published wheel. A wheel that it cannot install is not published.
func TestClients(t *testing.T) {
	if out, err := exec.Command("python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("this host has no pip: %s", out)
	}
	place := must.Get(Open[Directory]("file:"+t.TempDir(), Options{}))(t)
	b := bundle(t, "1.0+rocm5.7")
	r, err := place.Put(t.Context(), b, "candidate", taken)
	must.Hold(t, err == nil && slices.Equal(r.Checked, []string{"pip"}), "%+v, %v", r, err)

	// pip refuses a wheel with another name inside.
	liar := bundle(t, "2.0")
	liar.project = "toll"
	_, err = place.Put(t.Context(), liar, "candidate", taken)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "with pip"), "%v", err)
	all := list(t, place)
	check.That(t, len(all) == 1 && all[0].Cell == b.Entry.ID, "left: %+v", all)
	pages, err := filepath.Glob(filepath.Join(place.dir, "*", "toll", "index.html"))
	check.That(t, err == nil && len(pages) == 0, "left: %q, %v", pages, err)
}

// The arguments request the platform of the wheel, not of the host.
func TestArgumentsOfClients(t *testing.T) {
	for file, want := range map[string]string{
		"tool-1.0-cp311-cp311-manylinux_2_36_x86_64.whl": "cp311 cp 3.11 manylinux_2_36_x86_64",
		"tool-1.0-py3-none-linux_aarch64.whl":            "none py linux_aarch64",
		"tool-1.0-py2.py3-none-any.whl":                  "none py any",
	} {
		name := must.Get(wheel.ParseName(file))(t)
		var got []string
		args := pipArgs(name)
		for i, arg := range args {
			if i > 0 && slices.Contains([]string{"--implementation", "--python-version", "--abi", "--platform"}, args[i-1]) {
				got = append(got, arg)
			}
		}
		check.Same(t, file, want, strings.Join(got, " "))
	}
}

// Put verifies the package pulled from a registry before a tag names it.
func TestPullIsVerified(t *testing.T) {
	place := registry(t)
	b := bundle(t, "1.0")
	wrong := func(string, func(index.Vet) (string, error)) (Bundle, error) {
		return Bundle{}, diag.Errorf(diag.Gate, "it does not verify")
	}
	_, err := place.Put(t.Context(), b, "candidate", wrong)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "does not verify"), "%v", err)
	_, err = place.Find(t.Context(), b.Entry.Key())
	check.That(t, diag.CodeOf(err) == diag.Usage, "it is left: %v", err)
	r, err := place.Put(t.Context(), b, "candidate", taken)
	check.That(t, err == nil && slices.Equal(r.Checked, []string{"pull and verify"}), "%+v, %v", r, err)
}
