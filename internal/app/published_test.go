package app_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/app"
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
	s.Key = filepath.Join(t.TempDir(), "key.pem")
	must.Succeed(t, key.Write(s.Key))
	out := outOf(t, s, of)
	index := t.TempDir()
	places := map[string]string{"index": "file:" + index}
	for name, referrers := range map[string]bool{"registry": true, "registry without referrers": false} {
		address, stop := ocitest.Serve(referrers)
		defer stop()
		places[name] = address
	}
	for name, place := range places {
		_, err := app.Publish(t.Context(), s, app.PublishRequest{Paths: []string{filepath.Join(out, "tiny-1.0")}, To: place, Channel: attest.Candidate})
		must.Hold(t, err == nil, "%s: %v", name, err)
		at, err := publish.OpenCatalogue(place, false)
		must.Succeed(t, err)
		all, err := at.List(t.Context())
		must.Hold(t, err == nil && len(all) == 1, "%s: %+v, %v", name, all, err)
		path := filepath.Join(index, "files", all[0].Project, all[0].Filename)
		if name != "index" {
			path, err = at.Bring(t.Context(), all[0].Key, t.TempDir(), func(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil })
			must.Hold(t, err == nil, "%s: %v", name, err)
		}
		v.accepts(t, "conformance", public, path)
	}
}

// agreesOnDifferences requires that diffoscope names the same members and sections of two
// wheels as the report of a second build.
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
	first := rezipped(t, wheel(library(1, "GCC 12"), library(1, "GCC 12")), func([]*zip.File) {})
	for name, c := range map[string]struct {
		second string
		says   []string
		agree  []string
	}{
		"sections": {wheel(library(2, "GCC 12"), library(1, "GCC 13")),
			[]string{`tool/comment.so .comment differs: "GCC 12", "GCC 13"`, "tool/text.so .text differs"},
			[]string{"tool/comment.so .comment", "tool/text.so .text"}},
		"a time": {rezipped(t, first, func(all []*zip.File) { all[2].Modified = all[2].Modified.Add(48 * time.Hour) }),
			[]string{"tool/a.py has time 2023-11-14 22:13:20 and mode 644, and time 2023-11-16 22:13:20 and mode 644 in the second build: pack with a fixed time and mode"},
			[]string{"packed tool/a.py"}},
		"the order": {rezipped(t, first, func(all []*zip.File) { all[2], all[3] = all[3], all[2] }),
			[]string{"the order of the members differs: tool/b.py comes in the place of tool/a.py: pack in a fixed order"},
			[]string{"packed tool/a.py"}}, // it lists the member twice: removed here, added there
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := difference.Of(first, c.second)
			check.That(t, err == nil && slices.Equal(got, c.says), "%q, %v", got, err)
			found := v.diffoscope(t, first, c.second)
			check.That(t, slices.Equal(found, c.agree), "diffoscope names %q, and builder says %q", found, got)
		})
	}
}

// rezipped returns a copy of a wheel with edited members, packed again.
func rezipped(t *testing.T, path string, edit func([]*zip.File)) string {
	t.Helper()
	r, err := zip.OpenReader(path)
	must.Succeed(t, err)
	defer r.Close()
	edit(r.File)
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	f, err := os.Create(out)
	must.Succeed(t, err)
	w := zip.NewWriter(f)
	for _, m := range r.File {
		to, err1 := w.CreateHeader(&zip.FileHeader{Name: m.Name, Method: m.Method, Modified: m.Modified, ExternalAttrs: m.ExternalAttrs, CreatorVersion: m.CreatorVersion})
		from, err2 := m.Open()
		must.Succeed(t, err1, err2)
		_, err := io.Copy(to, from)
		must.Succeed(t, err)
	}
	must.Succeed(t, w.Close(), f.Close())
	return out
}

// A diffoscopeReport is a node of diffoscope's report in JSON.
type diffoscopeReport struct {
	Name    string             `json:"source1"`
	Diff    string             `json:"unified_diff"`
	Details []diffoscopeReport `json:"details"`
}

var (
	sectionOf = regexp.MustCompile(`--(?:section|hex-dump)=(\S+)`)
	memberOf  = regexp.MustCompile(`(?m)^[-+][-rwx]{10} .* (\S+)$`)
)

// diffoscope returns the sections that diffoscope finds to differ, as "MEMBER SECTION",
// and the members that it lists with another time, mode or place, as "packed MEMBER" if
// no content differs. It leaves out RECORD, which follows from the other members.
func (v validators) diffoscope(t *testing.T, first, second string) []string {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	if out, equal := v.run(t, "diffoscope", "--no-progress", "--exclude-command", "^zipdetails", "--json", report, first, second); equal {
		t.Fatalf("it finds no difference: %s", out)
	}
	data, err := os.ReadFile(report)
	var root diffoscopeReport
	must.Succeed(t, err, json.Unmarshal(data, &root))
	var sections, packed []string
	for _, member := range root.Details {
		if strings.HasPrefix(member.Name, "zipinfo") {
			for _, line := range memberOf.FindAllStringSubmatch(member.Diff, -1) {
				packed = append(packed, "packed "+line[1])
			}
		}
		for _, part := range member.Details {
			if m := sectionOf.FindStringSubmatch(part.Name); m != nil {
				sections = append(sections, member.Name+" "+m[1])
			}
		}
	}
	if len(sections) == 0 {
		sections = packed
	}
	slices.Sort(sections)
	return slices.Compact(sections)
}
