package app_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/app/release"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/difference"
	"builder/internal/publishing/publish"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/must"
	"builder/test/kit/ocitest"
	"builder/test/kit/wheeltest"
)

// published requires that cosign and in-toto verify what publish wrote to an index and to
// registries with and without the referrers API.
func (v validators) published(t *testing.T, key signing.Key, public string) {
	t.Helper()
	s, of := newSession(t, &builds{holds: "tiny"})
	s.Keys.Key = filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(t, key.Write(s.Keys.Key))
	out := outOf(t, s, of)
	index := t.TempDir()
	places := map[string]string{"index": "file:" + index}
	for name, referrers := range map[string]bool{"registry": true, "registry without referrers": false} {
		address, stop := ocitest.Serve(referrers)
		defer stop()
		places[name] = address
	}
	for name, place := range places {
		_, err := release.Publish(t.Context(), releaseOf(s), release.Request{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		must.Hold(t, err == nil, "%s: %v", name, err)
		at, err := publish.OpenCatalogue(place, false)
		must.Succeed(t, err)
		found, err := at.Find(t.Context(), "tiny-1.0")
		must.Hold(t, err == nil, "%s: %v", name, err)
		path := filepath.Join(index, "files", "tiny", "tiny-1.0-py3-none-any.whl")
		if name != "index" {
			path, err = at.Bring(t.Context(), found.Key, t.TempDir(), func(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil })
			must.Hold(t, err == nil, "%s: %v", name, err)
		}
		v.accepts(t, "conformance", public, path)
	}
}

// agreesOnDifferences requires that diffoscope names the same members of two wheels
// as the report of a second build.
func (v validators) agreesOnDifferences(t *testing.T) {
	t.Helper()
	for _, program := range []string{"readelf", "objdump", "zipinfo"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("diffoscope needs the packages binutils and unzip: %v", err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(v.bin, "python3"), "-c", "import magic, libarchive").CombinedOutput(); err != nil {
		t.Skipf("diffoscope needs the libraries libmagic and libarchive: %v\n%s", err, out)
	}
	library := func(code byte, comment string) string {
		return string(elftest.Library{
			Soname: "x.so", Exported: []elftest.Symbol{{Name: "f", Code: []byte{0xb8, code, 0, 0, 0, 0xc3}}}, // mov $code, %eax; ret
			Sections: []elftest.Section{{Name: ".comment", Data: []byte(comment + "\x00")}},
		}.Bytes())
	}
	wheel := func(text, comment string) string {
		return wheeltest.Wheel{Name: "tool-1.0-py3-none-any.whl", Files: []wheeltest.File{
			{Name: "tool/text.so", Text: text}, {Name: "tool/comment.so", Text: comment},
			{Name: "tool/a.py", Text: "a = 1\n"}, {Name: "tool/b.py", Text: "b = 1\n"},
		}}.Write(t)
	}
	first, second := wheel(library(1, "GCC 12"), library(1, "GCC 12")), wheel(library(2, "GCC 12"), library(1, "GCC 13"))
	got, err := difference.Of(first, second)
	says := []string{`tool/comment.so differs: "GCC 12", "GCC 13"`, "tool/text.so differs"}
	check.That(t, err == nil && slices.Equal(got, says), "%q, %v", got, err)
	found := v.diffoscope(t, first, second)
	check.That(t, slices.Equal(found, []string{"tool/comment.so", "tool/text.so"}), "diffoscope names %q, and builder says %q", found, got)
}

// A diffoscopeReport is a node of diffoscope's report in JSON.
type diffoscopeReport struct {
	Name    string             `json:"source1"`
	Diff    string             `json:"unified_diff"`
	Details []diffoscopeReport `json:"details"`
}

// diffoscope returns the members with a section that diffoscope finds to differ.
func (v validators) diffoscope(t *testing.T, first, second string) []string {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	if out, equal := v.run(t, "diffoscope", "--no-progress", "--exclude-command", "^zipdetails", "--json", report, first, second); equal {
		t.Fatalf("it finds no difference: %s", out)
	}
	data, err := os.ReadFile(report)
	var root diffoscopeReport
	must.Succeed(t, err, json.Unmarshal(data, &root))
	var members []string
	for _, member := range root.Details {
		if slices.ContainsFunc(member.Details, func(part diffoscopeReport) bool {
			return strings.Contains(part.Name, "--section=") || strings.Contains(part.Name, "--hex-dump=")
		}) {
			members = append(members, member.Name)
		}
	}
	slices.Sort(members)
	return members
}
