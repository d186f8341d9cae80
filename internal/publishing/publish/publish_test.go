package publish

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/input/oci"
	"builder/internal/plan/lock"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
	"builder/test/kit/wheeltest"
)

var built = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// bundle returns a bundle as Load would return it for a wheel of the given version. Its
// provenance and its round of gates have dummy contents, which these tests do not read.
func bundle(t *testing.T, version string) Bundle {
	t.Helper()
	path := wheeltest.Wheel{
		Name:  "tool-" + version + "-cp311-cp311-manylinux_2_36_x86_64.whl",
		Files: []wheeltest.File{{Name: "tool/__init__.py", Text: "version = '" + version + "'\n"}},
	}.Write(t)
	a, err := artifact.Of(path, "")
	must.Succeed(t, err)
	b := Bundle{
		Wheel: a, Entry: lock.Entry{ID: "tool-" + version, Recipe: "tool", Axes: map[string]string{"version": version}},
		Verdicts: []verdict.Verdict{{Gate: "size", Status: verdict.Pass}},
		documents: []attest.Document{
			{Name: "provenance.sigstore.json", PredicateType: attest.ProvenanceType, Made: built},
			{Name: "verdicts.sigstore.json", PredicateType: attest.TestResultType, Made: built.Add(time.Hour), Verdicts: []verdict.Verdict{{Gate: "size", Status: verdict.Pass}}},
		},
	}
	dir := attest.Dir(path)
	must.Succeed(t, os.Mkdir(dir, 0o755))
	for _, name := range []string{"provenance.sigstore.json", "verdicts.sigstore.json", "sbom.spdx.json"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(name+version), 0o600))
	}
	b.Said = said(t, a)
	must.Succeed(t, b.readMetadata())
	return b
}

// said lists the files in an artifact's folder of statements, without a check of
// signatures.
func said(t *testing.T, a artifact.Artifact) (files []artifact.Artifact) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(attest.Dir(a.Path), "*"))
	must.Succeed(t, err)
	for _, path := range paths {
		f, err := artifact.Of(path, "")
		must.Succeed(t, err)
		files = append(files, f)
	}
	return files
}

// anything is a vet that admits every offered file.
func anything(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil }

// taken fetches without verification.
func taken(ctx context.Context, from Source, key, dir string) (Bundle, error) {
	path, err := from.Bring(ctx, key, dir, anything)
	if err != nil {
		return Bundle{}, err
	}
	a, err := artifact.Of(path, "")
	return Bundle{Wheel: a}, err
}

func put(t *testing.T, to Destination, b Bundle, channel string) Receipt {
	t.Helper()
	r, err := to.Put(t.Context(), b, channel)
	must.Succeed(t, err)
	return r
}

func list(t *testing.T, at Source) []index.Record {
	t.Helper()
	all, err := at.List(t.Context())
	must.Succeed(t, err)
	return all
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
		c, err := OpenCatalogue(text, false)
		must.Succeed(t, err)
		all[name] = c
	}
	return all
}

func TestCatalogues(t *testing.T) {
	for name, place := range catalogues(t) {
		t.Run(name, func(t *testing.T) {
			if all := list(t, place); len(all) != 0 {
				t.Fatalf("an empty place holds %v", all)
			}
			one, two := bundle(t, "1.0"), bundle(t, "2.0")
			check.That(t, !put(t, place, one, "candidate").Existed, "it was there before")
			put(t, place, two, "candidate")
			check.That(t, put(t, place, two, "stable").Existed, "it was not there the second time")
			all := list(t, place)
			must.Hold(t, len(all) == 2, "listed: %+v", all)
			first, second := all[0], all[1]
			if first.Cell != "tool-1.0" || first.Key != one.Entry.Key() || first.Project != "tool" || first.Version != "1.0" || first.SHA256 != one.Wheel.SHA256 ||
				first.Axes["version"] != "1.0" || first.Gates["size"] != "pass" || first.Published.IsZero() || len(first.Tags) > 0 {
				t.Errorf("%+v", first)
			}
			if !slices.Equal(first.Channels, []string{"candidate"}) || !slices.Equal(second.Channels, []string{"candidate", "stable"}) {
				t.Errorf("channels: %v and %v", first.Channels, second.Channels)
			}
			found, err := FindCell(t.Context(), place, one.Entry.Key())
			check.That(t, err == nil && found.Cell == "tool-1.0", "%+v, %v", found, err)
			_, err = FindCell(t.Context(), place, "tool-1.1")
			check.That(t, diag.CodeOf(err) == diag.Usage, "%v", err)

			path, err := place.Bring(t.Context(), one.Entry.Key(), filepath.Join(t.TempDir(), "taken"), anything)
			must.Succeed(t, err)
			said, err := os.ReadDir(attest.Dir(path))
			check.That(t, err == nil && len(said) == 3, "came with it: %v, %v", said, err)

			for range 2 { // withdrawing a missing wheel is no error
				must.Succeed(t, place.Withdraw(t.Context(), one.Entry.Key()))
			}
			_, err = place.Bring(t.Context(), one.Entry.Key(), t.TempDir(), anything)
			check.That(t, errors.Is(err, ErrNotPublished), "%v", err)
			if all := list(t, place); len(all) != 1 || all[0].Cell != "tool-2.0" {
				t.Errorf("left: %+v", all)
			}
			check.That(t, !put(t, place, one, "candidate").Existed, "what was withdrawn was still there")
		})
	}
}

// registry returns an empty repository of a registry with the referrers API.
func registry(t *testing.T) Registry {
	t.Helper()
	address, stop := ocitest.Serve(true)
	t.Cleanup(stop)
	place, err := openRegistry(address, false)
	must.Succeed(t, err)
	return place
}

// oras, crane and cosign show these tags and annotations.
func TestRegistryNames(t *testing.T) {
	place := registry(t)
	b := bundle(t, "1.0+rocm5.7")
	put(t, place, b, "candidate")
	tags, err := place.Tags(t.Context())
	want := []string{"key-" + b.Entry.Key(), "tool-1.0_rocm5.7", "tool-1.0_rocm5.7-candidate"}
	check.That(t, err == nil && slices.Equal(tags, want), "tags %v, %v", tags, err)
	long := tagOf(strings.Repeat("x", 200) + "-candidate")
	check.That(t, len(long) == 128 && long != tagOf(strings.Repeat("x", 200)+"-stable"), "%s", long)
	digest, err := place.Resolve(t.Context(), want[0])
	must.Succeed(t, err)
	all, err := place.Referrers(t.Context(), digest)
	must.Hold(t, err == nil && len(all) == 3, "%v, %v", all, err)
	seen := map[string]string{}
	for _, ref := range all {
		seen[ref.Files[0].Name] = ref.Annotations[createdNote] + " " + ref.Annotations[saysNote] + " " + ref.Annotations[gatesNote]
	}
	if seen["provenance.sigstore.json"] != "2026-01-02T03:04:05Z "+attest.ProvenanceType+" " || seen["verdicts.sigstore.json"] != "2026-01-02T04:04:05Z "+attest.TestResultType+` {"size":"pass"}` {
		t.Errorf("%q", seen)
	}

	// Tags set by others stay, and are listed.
	must.Succeed(t, place.Tag(t.Context(), digest, "prod", oci.TagOptions{}))
	check.Same(t, "tags of others", []string{"prod"}, list(t, place)[0].Tags)
}

// A tag of the registry that names something else is an error or is skipped.
func TestRegistryThatLies(t *testing.T) {
	place := registry(t)
	b := bundle(t, "1.0")
	put(t, place, b, "candidate")
	digest, err := place.Resolve(t.Context(), keyTag(b.Entry.Key()))
	must.Succeed(t, err)
	must.Succeed(t, place.Tag(t.Context(), digest, keyTag(strings.Repeat("0", 64)), oci.TagOptions{}))
	if all, err := place.List(t.Context()); err != nil || len(all) != 1 || all[0].Key != b.Entry.Key() {
		t.Errorf("%+v, %v", all, err)
	}
	other := bundle(t, "2.0")
	p, err := other.ociPackage()
	must.Succeed(t, err)
	p.ArtifactType = "application/x-other"
	digest, _, err = place.Push(t.Context(), p, nil)
	must.Succeed(t, err)
	must.Succeed(t, place.Tag(t.Context(), digest, keyTag(other.Entry.Key()), oci.TagOptions{}))
	if _, err := place.List(t.Context()); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "has the tag of a published cell, but is not one") {
		t.Errorf("%v", err)
	}
}

// An index behind a web server gives the same list as its directory.
func TestListOverTheNetwork(t *testing.T) {
	dir := t.TempDir()
	place, err := openDirectory("file:" + dir)
	must.Succeed(t, err)
	put(t, place, bundle(t, "1.0"), "candidate")
	put(t, place, bundle(t, "2.0"), "stable")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	remote, err := OpenSource(server.URL, false, nil)
	must.Succeed(t, err)
	here, _ := json.Marshal(list(t, place))
	there, _ := json.Marshal(list(t, remote))
	check.That(t, len(list(t, place)) == 2 && string(here) == string(there), "here %s\nthere %s", here, there)
	_, err = OpenCatalogue(server.URL, false)
	check.That(t, diag.CodeOf(err) == diag.Usage, "%v", err)
}

// program runs a program without the host's index settings.
func program(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A real pip, and a uv in PATH, install the published wheel. A wheel they cannot
// install is withdrawn.
func TestClients(t *testing.T) {
	if out, err := exec.Command("python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("this host has no pip: %s", out)
	}
	uv, _ := exec.LookPath("uv")
	place, err := openDirectory("file:" + t.TempDir())
	must.Succeed(t, err)
	b := bundle(t, "1.0+rocm5.7")
	client := &Client{Run: program, UV: uv}
	want := []string{"pip"}
	if uv != "" {
		want = append(want, "uv")
	}
	r, err := Publish(t.Context(), place, b, "candidate", client)
	must.Hold(t, err == nil && slices.Equal(r.Checked, want), "%+v, %v", r, err)

	// pip refuses a wheel with another name inside.
	liar := bundle(t, "2.0")
	liar.project = "toll"
	_, err = Publish(t.Context(), place, liar, "candidate", client)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "with pip"), "%v", err)
	all := list(t, place)
	check.That(t, len(all) == 1 && all[0].Cell == b.Entry.ID, "left: %+v", all)
}

// The arguments request the platform of the wheel, not of the host.
func TestArgumentsOfClients(t *testing.T) {
	for file, want := range map[string]string{
		"tool-1.0-cp311-cp311-manylinux_2_36_x86_64.whl": "cp cp311 3.11 manylinux_2_36_x86_64 | 3.11 x86_64-manylinux_2_36",
		"tool-1.0-py3-none-manylinux_2_29_x86_64.whl":    "py none manylinux_2_29_x86_64 | x86_64-manylinux_2_31",
		"tool-1.0-py3-none-manylinux_2_41_x86_64.whl":    "py none manylinux_2_41_x86_64 | x86_64-manylinux_2_41",
		"tool-1.0-py3-none-linux_aarch64.whl":            "py none linux_aarch64 | aarch64-unknown-linux-gnu",
		"tool-1.0-py2.py3-none-any.whl":                  "py none any |",
	} {
		name, err := wheel.ParseName(file)
		must.Succeed(t, err)
		var got []string
		for _, args := range [][]string{pipArgs(name), {"|"}, uvArgs(name)} {
			for i, arg := range args {
				if arg == "|" || i > 0 && slices.Contains([]string{"--implementation", "--python-version", "--abi", "--platform", "--python-platform"}, args[i-1]) {
					got = append(got, arg)
				}
			}
		}
		check.That(t, strings.Join(got, " ") == want, "%s: %s, want %s", file, strings.Join(got, " "), want)
	}
}

// Publish verifies the package pulled from a registry, and withdraws it if the
// verification fails.
func TestPullIsVerified(t *testing.T) {
	place := registry(t)
	b := bundle(t, "1.0")
	wrong := &Client{Take: func(context.Context, Source, string, string) (Bundle, error) {
		return Bundle{}, diag.Errorf(diag.Gate, "it does not verify")
	}}
	_, err := Publish(t.Context(), place, b, "candidate", wrong)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "does not verify"), "%v", err)
	all := list(t, place)
	check.That(t, len(all) == 0, "left: %+v", all)
	right := &Client{Take: taken}
	if r, err := Publish(t.Context(), place, b, "candidate", right); err != nil || !slices.Equal(r.Checked, []string{"pull and verify"}) {
		t.Errorf("%+v, %v", r, err)
	}
}
