package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/oci"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/ocitest"
)

// takeFrom takes the cell from a place on a new host that trusts the workshop's host.
func (s *scene) takeFrom(place string) outcome {
	s.env = maps.Clone(s.env)
	s.env["BUILDER_HOME"] = filepath.Join(s.dir, "fresh-home")
	return s.builder("run", "tiny", "--locked", "--out", filepath.Join(s.dir, "taken"), "--from", place, "--from-only", "--trust", filepath.Join(s.made.home, "key.pem.pub"))
}

// record edits the index record of the published cell. Its files may be replaced by
// others in the index.
func (s *scene) record(edit func(r *index.Record)) {
	s.Helper()
	records, err := filepath.Glob(s.index("keys", "*.json"))
	s.check(err)
	var r index.Record
	data, err := os.ReadFile(records[0])
	s.check(err)
	s.check(json.Unmarshal(data, &r))
	edit(&r)
	data, err = json.Marshal(r)
	s.check(err)
	s.check(os.WriteFile(records[0], data, 0o600))
}

// plant writes a file into the index and returns its entry for a record.
func (s *scene) plant(path, text string) index.File {
	s.Helper()
	s.check(os.WriteFile(s.index("files", "tiny", path), []byte(text), 0o600))
	return index.File{Path: path, SHA256: sumOf([]byte(text)), Size: int64(len(text))}
}

// TestHostileIndexes takes cells from an index that others can change. The host must
// accept nothing unsigned, and must not download a wheel before its signed statements
// are verified.
func TestHostileIndexes(t *testing.T) {
	t.Parallel()
	made := newWorkshop(t)
	const name, said = "tiny-1.0-py3-none-any.whl", "tiny-1.0-py3-none-any.whl.attestations"
	for _, c := range []struct {
		what    string
		do      func(s *scene)
		says    string
		fetched bool // the wheel was requested
	}{
		{"an unsigned file lies beside the wheel", func(s *scene) {
			evil := s.plant("evil.html", "<script>")
			s.record(func(r *index.Record) { r.Beside = append(r.Beside, evil) })
		}, `the file "evil.html" beside it, with sha256 [0-9a-f]{64}, is unsigned`, false},
		{"an unsigned file lies among the statements", func(s *scene) {
			evil := s.plant(said+"/evil.html", "<script>")
			s.record(func(r *index.Record) { r.Beside = append(r.Beside, evil) })
		}, `evil.html: it is unsigned`, false},
		{"the wheel has another name", func(s *scene) {
			const other = "tiny-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"
			s.check(os.Rename(s.index("files", "tiny", name), s.index("files", "tiny", other)))
			s.check(os.Rename(s.index("files", "tiny", said), s.index("files", "tiny", other+".attestations")))
			s.record(func(r *index.Record) {
				r.Filename = other
				for i := range r.Beside {
					r.Beside[i].Path = strings.Replace(r.Beside[i].Path, name, other, 1)
				}
			})
		}, `the statement is about tiny-1.0-py3-none-any.whl, the artifact is named tiny-1.0-cp312`, false},
		{"the wheel has no statements", func(s *scene) {
			s.record(func(r *index.Record) { r.Beside = nil })
		}, "holds no statement", false},
		{"the record lists a wrong size", func(s *scene) {
			s.record(func(r *index.Record) { r.Size = 2 << 30 })
		}, `tiny-1.0-py3-none-any.whl: the source lists 2147483648 bytes, the signed size is [0-9]+`, false},
		{"a statement is said to be large", func(s *scene) {
			s.record(func(r *index.Record) { r.Beside[0].Size = 2 << 30 })
		}, "the source lists 2147483648 bytes, the limit is", false},
		{"the wheel does not end", func(s *scene) {
			s.check(os.Remove(s.index("files", "tiny", name)))
		}, "the file is longer than the expected [0-9]+ bytes", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := made.scene(t)
			s.openDirectory()
			if got := s.publish(s.cell); got.exit != diag.OK {
				t.Fatal(got.stderr)
			}
			c.do(s)
			var asked, sent atomic.Int64
			files := http.FileServer(http.Dir(s.index()))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, ".whl") {
					files.ServeHTTP(w, r)
					return
				}
				asked.Add(1)
				n, _ := io.Copy(w, io.LimitReader(zeros{}, 1<<30))
				sent.Add(n)
			}))
			defer server.Close()
			for _, place := range []string{server.URL, s.to} {
				if c.fetched && place == s.to {
					continue
				}
				if got := s.takeFrom(place); got.exit != diag.Fetch || !regexp.MustCompile(c.says).MatchString(got.stderr) {
					t.Errorf("%s: exit code %d: %s", place, got.exit, got.stderr)
				}
			}
			check.That(t, c.fetched || asked.Load() == 0, "the wheel was asked for %d times", asked.Load())
			kept := bytesBelow(t, filepath.Join(s.dir, "fresh-home"))
			check.That(t, kept <= 1<<20, "%d bytes are left", kept)
		})
	}
}

// TestHostileRegistries does the same with a registry that others push to.
func TestHostileRegistries(t *testing.T) {
	t.Parallel()
	made := newWorkshop(t)
	for what, c := range map[string]struct {
		edit func(s *scene, p *oci.Package)
		says string
	}{
		"an unsigned layer": {func(s *scene, p *oci.Package) {
			p.Files = append(p.Files, s.layer("evil.html"))
		}, `the file "evil.html" beside it, with sha256 [0-9a-f]{64}, is unsigned`},
		"an unsigned referrer": {func(s *scene, p *oci.Package) {
			p.Referrers = append(p.Referrers, oci.Referrer{ArtifactType: "application/vnd.dev.sigstore.bundle.v0.3+json", File: s.layer("evil.html")})
		}, `evil.html: it is unsigned`},
		"another title": {func(_ *scene, p *oci.Package) {
			p.Files[0].Name = "tiny-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"
		}, `the statement is about tiny-1.0-py3-none-any.whl, the artifact is named tiny-1.0-cp312`},
	} {
		t.Run(what, func(t *testing.T) {
			s := made.scene(t)
			address, stop := ocitest.Serve(true)
			defer stop()
			s.to, s.flags = address, []string{"--no-check"}
			if got := s.publish(s.cell); got.exit != diag.OK {
				t.Fatal(got.stderr)
			}
			if got := s.takeFrom(address); got.exit != diag.OK {
				t.Fatalf("before: %s", got.stderr)
			}
			s.check(os.RemoveAll(s.env["BUILDER_HOME"]))
			s.pushEdited(address, c.edit)
			if got := s.takeFrom(address); got.exit != diag.Fetch || !regexp.MustCompile(c.says).MatchString(got.stderr) {
				t.Errorf("exit code %d: %s", got.exit, got.stderr)
			}
		})
	}
}

// layer returns a file to push.
func (s *scene) layer(name string) oci.File {
	s.Helper()
	path := filepath.Join(s.dir, name)
	s.check(os.WriteFile(path, []byte(name), 0o600))
	return oci.File{Path: path, Name: name, MediaType: "application/octet-stream", SHA256: sumOf([]byte(name)), Size: int64(len(name))}
}

// pushEdited replaces the package with the only key in a repository.
func (s *scene) pushEdited(address string, edit func(s *scene, p *oci.Package)) {
	s.Helper()
	repo, err := oci.OpenRepository(address, oci.Options{})
	s.check(err)
	tags, err := repo.Tags(s.Context())
	s.check(err)
	for _, tag := range tags {
		if !strings.HasPrefix(tag, "key-") {
			continue
		}
		digest, err := repo.Resolve(s.Context(), tag)
		s.check(err)
		m, err := repo.Manifest(s.Context(), digest)
		s.check(err)
		about, err := repo.Referrers(s.Context(), digest)
		s.check(err)
		p := oci.Package{ArtifactType: m.ArtifactType, Files: m.Files, Annotations: m.Annotations}
		for _, ref := range about {
			p.Referrers = append(p.Referrers, oci.Referrer{ArtifactType: ref.ArtifactType, File: ref.Files[0], Annotations: ref.Annotations})
		}
		edit(s, &p)
		moved, _, err := repo.Push(s.Context(), p, nil) // the other files exist already
		s.check(err)
		s.check(repo.Tag(s.Context(), moved, tag, oci.TagOptions{Move: true}))
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// bytesBelow returns the total size of the files below a directory.
func bytesBelow(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	check.That(t, err == nil, "%v", err)
	return total
}

// TestAtOnceFromOnePlace starts several runs with a shared home. They take the same
// cell at the same time.
func TestAtOnceFromOnePlace(t *testing.T) {
	t.Parallel()
	made := newWorkshop(t)
	s := made.scene(t)
	s.openDirectory()
	if got := s.publish(s.cell); got.exit != diag.OK {
		t.Fatal(got.stderr)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(s.index())))
	defer server.Close()
	for round, place := range []string{s.to, server.URL, s.to} {
		s.env["BUILDER_HOME"] = filepath.Join(s.dir, fmt.Sprintf("shared-home-%d", round))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				got := s.builder("run", "tiny", "--locked", "--out", filepath.Join(s.dir, fmt.Sprintf("taken-%d-%d", round, i)),
					"--from", place, "--from-only", "--trust", filepath.Join(made.home, "key.pem.pub"))
				check.That(t, got.exit == diag.OK, "round %d: exit code %d: %s", round, got.exit, got.stderr)
			})
		}
		all.Wait()
		if left, err := os.ReadDir(filepath.Join(s.env["BUILDER_HOME"], "scratch")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// TestPromoteIsToldWhichCell uses an index that lists one cell under the name of
// another.
func TestPromoteIsToldWhichCell(t *testing.T) {
	t.Parallel()
	s := newWorkshop(t).scene(t)
	s.openDirectory()
	if got := s.publish(s.cell); got.exit != diag.OK {
		t.Fatal(got.stderr)
	}
	const name = "tiny-1.0-py3-none-any.whl.record.json"
	data, err := os.ReadFile(s.index("files", "tiny", name))
	s.check(err)
	s.plant(name, strings.Replace(string(data), `"cell": "tiny-1.0"`, `"cell": "tiny-1.1"`, 1))
	got := s.builder("publish", "promote", "tiny-1.1", "--at", s.to, "--channel", "candidate")
	if got.exit != diag.Publish || !strings.Contains(got.stderr, "the destination names it tiny-1.1, but the signed entry names it tiny-1.0") {
		t.Errorf("exit code %d: %s", got.exit, got.stderr)
	}
}
