package index_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func open(t *testing.T) (*index.Index, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "index")
	return index.Open(dir), dir
}

// file writes a file with the given content.
func file(t *testing.T, name, text string) artifact.Artifact {
	t.Helper()
	path := must.File(t, name, text)
	return must.Get(artifact.Of(path, ""))(t)
}

func key(n int) string { return fmt.Sprintf("%064x", n) }

func publication(t *testing.T, n int, text string) index.Publication {
	t.Helper()
	name := fmt.Sprintf("tool-1.%d+cuda13.0-py3-none-any.whl", n)
	return index.Publication{
		Wheel: file(t, name, text), Metadata: []byte("Name: tool\n"),
		Beside: map[string]artifact.Artifact{name + ".attestations/provenance.sigstore.json": file(t, "p", "provenance of "+text)},
		Record: index.Record{
			Project: "tool", Version: fmt.Sprintf("1.%d+cuda13.0", n), RequiresPython: ">=3.9,<4",
			Cell: fmt.Sprintf("tool-1.%d", n), Key: key(n), Recipe: "tool", Axes: map[string]string{"cuda": "13.0", "version": fmt.Sprint(n)},
			Gates: map[string]string{"size": "pass"}, Channels: []string{"candidate"},
		},
	}
}

func add(t *testing.T, x *index.Index, p index.Publication) index.Record {
	t.Helper()
	added := must.Get(x.Add(t.Context(), p, nil))(t)
	return added.Record
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(path...)))(t))
}

func TestAddAndTake(t *testing.T) {
	x, dir := open(t)
	r := add(t, x, publication(t, 1, "wheel"))
	found, err := x.Find(t.Context(), key(1))
	must.Hold(t, err == nil && found.SHA256 == r.SHA256 && found.Cell == "tool-1.1", "%+v, %v", found, err)
	out := t.TempDir()
	a, err := x.Take(t.Context(), found, out, all)
	check.That(t, err == nil && a.SHA256 == r.SHA256 && read(t, a.Path) == "wheel" && read(t, out, r.Filename+".attestations", "provenance.sigstore.json") == "provenance of wheel",
		"%+v, %v", a, err)
	page := read(t, dir, "simple", "tool", "index.html")
	for _, want := range []string{`href="../../files/tool/tool-1.1%2Bcuda13.0-py3-none-any.whl#sha256=` + r.SHA256, `data-requires-python="&gt;=3.9,&lt;4"`, `data-upload-time="20`} {
		check.That(t, strings.Contains(page, want), "%q is not in\n%s", want, page)
	}
	var all []index.Record
	err = json.Unmarshal([]byte(read(t, dir, "index.json")), &all)
	check.That(t, err == nil && len(all) == 1, "%v, %v", all, err)
	_, err = x.Find(t.Context(), key(2))
	check.That(t, errors.Is(err, fs.ErrNotExist), "%v", err)
	_, err = x.Find(t.Context(), "../../index")
	check.That(t, errors.Is(err, fs.ErrNotExist), "a key that is a path: %v", err)
}

func TestAddAgain(t *testing.T) {
	x, dir := open(t)
	first := publication(t, 1, "wheel")
	before := add(t, x, first)
	first.Record.Channels = []string{"stable"}
	first.Record.Gates = map[string]string{"size": "pass", "busbw": "pass"}
	first.Beside[first.Wheel.Name+".attestations/verdicts-2.sigstore.json"] = file(t, "v", "more")
	added, err := x.Add(t.Context(), first, nil)
	r := added.Record
	if err != nil || !added.Existed || !slices.Equal(r.Channels, []string{"candidate", "stable"}) || len(r.Gates) != 2 || len(r.Beside) != 2 || !r.Published.Equal(before.Published) {
		t.Errorf("%+v, %v", added, err)
	}
	// A host that lacks a statement of another publisher does not remove its gate.
	again := publication(t, 1, "wheel")
	again.Record.Gates = map[string]string{"size": "fail"}
	added, err = x.Add(t.Context(), again, nil)
	if r = added.Record; !maps.Equal(r.Gates, map[string]string{"size": "fail", "busbw": "pass"}) || err != nil {
		t.Errorf("%v, %v", r.Gates, err)
	}
	// Another builder publishes the same bytes: the first record stays.
	other := publication(t, 1, "wheel")
	other.Record.Key = key(9)
	other.Beside[other.Wheel.Name+".attestations/provenance.sigstore.json"] = file(t, "p", "another")
	if added, err = x.Add(t.Context(), other, nil); err != nil || !added.Existed || added.Record.Key != key(1) {
		t.Errorf("%+v, %v", added, err)
	}
	text := read(t, dir, "files", "tool", r.Filename+".attestations", "provenance.sigstore.json")
	check.That(t, text == "provenance of wheel", "the provenance was replaced: %s", text)
	// Add refuses other bytes and changes nothing.
	pages := read(t, dir, "index.json")
	_, err = x.Add(t.Context(), publication(t, 1, "other"), nil)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "is already published with sha256 "+r.SHA256), "%v", err)
	check.That(t, read(t, dir, "index.json") == pages && read(t, dir, "files", "tool", r.Filename) == "wheel",
		"a refused publication changed the index")
}

func TestAddRefuses(t *testing.T) {
	for name, change := range map[string]func(*index.Publication){
		"a project outside": func(p *index.Publication) { p.Record.Project = "../x" },
		"a project":         func(p *index.Publication) { p.Record.Project = "Tool" },
		"a wheel outside":   func(p *index.Publication) { p.Wheel.Name = "../a.whl" },
		"another file":      func(p *index.Publication) { p.Wheel.Name = "a.zip" },
		"a key":             func(p *index.Publication) { p.Record.Key = "x" },
		"no channel":        func(p *index.Publication) { p.Record.Channels = nil },
		"a file outside":    func(p *index.Publication) { p.Beside["../../x"] = p.Wheel },
		"a hidden file":     func(p *index.Publication) { p.Beside["a/.hidden"] = p.Wheel },
		"other bytes":       func(p *index.Publication) { p.Wheel.SHA256 = key(5) },
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := open(t)
			p := publication(t, 1, "wheel")
			change(&p)
			_, err := x.Add(t.Context(), p, nil)
			must.Hold(t, err != nil && diag.CodeOf(err) == diag.Publish, "%v", err)
			all, err := x.List(t.Context())
			check.That(t, err == nil && len(all) == 0, "%v, %v", all, err)
			_, err = os.Stat(filepath.Join(dir, "index.json"))
			check.That(t, errors.Is(err, fs.ErrNotExist), "a page was written")
		})
	}
}

// The contents of the directory are untrusted.
func TestHostileRecords(t *testing.T) {
	x, dir := open(t)
	r := add(t, x, publication(t, 1, "wheel"))
	path := filepath.Join(dir, "files", "tool", r.Filename+".record.json")
	good := read(t, path)
	for name, text := range map[string]string{
		"empty":         "",
		"another":       "[]",
		"the future":    strings.Replace(good, `"schema": 1`, `"schema": 9`, 1),
		"a path":        strings.Replace(good, `"project": "tool"`, `"project": "../../tool"`, 1),
		"a path's name": strings.Replace(good, `"filename": "`, `"filename": "../`, 1),
		"another's":     strings.Replace(good, `"filename": "tool-1.1`, `"filename": "tool-1.2`, 1),
		"no digest":     strings.Replace(good, r.SHA256, "x", 1),
	} {
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		all, err := x.List(t.Context())
		check.That(t, err != nil && len(all) == 0, "%s: %v, %v", name, all, err)
	}
	r.Beside = append(r.Beside, index.File{Path: "../../../etc/passwd", SHA256: key(1)})
	_, err := x.Take(t.Context(), r, t.TempDir(), all)
	check.Fails(t, err, "is outside its folder")
}

// Add needs all records for the pages, so it fails before any change.
func TestTheRecordOfAnotherIsDamaged(t *testing.T) {
	x, dir := open(t)
	other := add(t, x, publication(t, 1, "wheel"))
	must.Succeed(t, os.Truncate(filepath.Join(dir, "files", "tool", other.Filename+".record.json"), 10))
	p := publication(t, 2, "another")
	_, err := x.Add(t.Context(), p, nil)
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(diag.All(err)[0].Hint, "restore the file from a copy"), "%v", err)
	_, err = os.Stat(filepath.Join(dir, "files", "tool", p.Wheel.Name))
	check.That(t, errors.Is(err, fs.ErrNotExist), "it was begun: %v", err)
}

// Publishing the same bytes again restores damaged files and removes temporary files of
// a killed publisher.
func TestPublishingAgainRepairs(t *testing.T) {
	x, dir := open(t)
	p := publication(t, 1, "wheel")
	r := add(t, x, p)
	folder := filepath.Join(dir, "files", "tool")
	for _, f := range append([]index.File{{Path: r.Filename}}, r.Beside...) {
		must.Succeed(t, os.Truncate(filepath.Join(folder, f.Path), 1))
	}
	half := filepath.Join(folder, "."+r.Filename+".123.tmp")
	must.Succeed(t, os.WriteFile(half, []byte("half"), 0o600))
	added, err := x.Add(t.Context(), p, nil)
	must.Hold(t, added.Existed && err == nil, "%+v, %v", added, err)
	_, err = x.Take(t.Context(), r, t.TempDir(), all)
	check.That(t, err == nil, "%v", err)
	_, err = os.Stat(half)
	check.That(t, errors.Is(err, fs.ErrNotExist), "%s is left: %v", half, err)
}

// Files of a killed publisher without a record do not count as published.
func TestWhatNobodyEndedIsNotPublished(t *testing.T) {
	x, dir := open(t)
	p := publication(t, 1, "wheel")
	for name := range p.Beside {
		path := filepath.Join(dir, "files", "tool", name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("of another build"), 0o600))
	}
	_, err := x.Take(t.Context(), add(t, x, p), t.TempDir(), all)
	check.That(t, err == nil, "%v", err)
}

// Disk errors have the class of publishing.
func TestFaultsOfTheDisk(t *testing.T) {
	for _, path := range []string{"", ".lock/x", "simple"} { // a file in place of the index or of simple, and a lock that is a directory
		x, dir := open(t)
		blocked := filepath.Join(dir, path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(blocked), 0o755), os.WriteFile(blocked, nil, 0o600))
		_, err := x.Add(t.Context(), publication(t, 1, "wheel"), nil)
		check.That(t, diag.CodeOf(err) == diag.Publish, "%q: %v", path, err)
	}
}

// A publisher killed between writing the record and the key leaves a wheel that can be
// yanked.
func TestARecordWithoutItsKey(t *testing.T) {
	x, dir := open(t)
	r := add(t, x, publication(t, 1, "wheel"))
	must.Succeed(t, os.Remove(filepath.Join(dir, "keys", r.Key+".json")))
	if yanked, err := x.Yank(t.Context(), r.Key, "wrong sums"); err != nil || yanked.Yanked == "" {
		t.Errorf("%+v, %v", yanked, err)
	}
	_, err := x.Yank(t.Context(), key(7), "nobody's")
	check.That(t, errors.Is(err, fs.ErrNotExist), "%v", err)
}

// Reading an index creates nothing. A directory name may contain glob characters.
func TestReadingMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in[de]x")
	x := index.Open(dir)
	_, err := x.Find(t.Context(), key(1))
	check.That(t, errors.Is(err, fs.ErrNotExist), "%v", err)
	all, err := x.List(t.Context())
	check.That(t, err == nil && len(all) == 0, "%v, %v", all, err)
	_, err = os.Stat(dir)
	check.That(t, errors.Is(err, fs.ErrNotExist), "made by reading: %v", err)
	add(t, x, publication(t, 1, "wheel"))
	all, err = x.List(t.Context())
	check.That(t, err == nil && len(all) == 1, "%v, %v", all, err)
}

// With concurrent publishers, every wheel ends up in the pages.
func TestPublishersAtOnce(t *testing.T) {
	_, dir := open(t)
	var all []index.Publication
	for n := range 8 {
		all = append(all, publication(t, n, fmt.Sprint("wheel ", n)))
	}
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			_, err := index.Open(dir).Add(t.Context(), p, nil)
			check.That(t, err == nil, "%v", err)
		})
	}
	wg.Wait()
	page := read(t, dir, "simple", "tool", "index.html")
	for _, p := range all {
		check.That(t, strings.Contains(page, p.Wheel.SHA256), "%s is not in the page", p.Wheel.Name)
	}
}

// all is a vet that admits every offered file.
func all(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil }

// A file beside the wheel that conflicts with a published one leaves no wheel behind.
func TestAConflictBesideLeavesNothing(t *testing.T) {
	x, dir := open(t)
	first, second := publication(t, 1, "wheel"), publication(t, 2, "another")
	first.Beside["shared.txt"] = file(t, "a", "one")
	second.Beside["shared.txt"] = file(t, "b", "two")
	add(t, x, first)
	paths := func() (all []string) {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			all = append(all, path)
			return err
		})
		must.Succeed(t, err)
		return all
	}
	before := paths()
	_, err := x.Add(t.Context(), second, nil)
	if all := diag.All(err); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "shared.txt is already published") || !strings.Contains(all[0].Hint, "`id` of the recipe") {
		t.Errorf("got %v", err)
	}
	check.Same(t, "the paths left", before, paths())
}
