package fetch_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/git"
	"builder/internal/input/pypi"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// repository returns a git repository with one commit, and the pin of its archive.
func repository(t *testing.T) (dir string, pin lock.SourcePin) {
	t.Helper()
	dir = t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n"), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}, {"tag", "v1"}} {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example"}, args...)...)
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "%v: %s", err, out)
	}
	commit := must.Get(git.Resolve(t.Context(), git.Repository(dir), "v1"))(t)
	pin = lock.SourcePin{
		File:       pypi.File{Project: "tool", Version: "1", Filename: "tool-1.tar"},
		Repository: "https://git.invalid/tool", Tag: "v1", Commit: commit,
	}
	archive := filepath.Join(t.TempDir(), "tool-1.tar")
	must.Get(git.Make(t.Context(), t.TempDir(), git.Repository(dir), git.Tree{Commit: commit, Folder: pin.Folder()}, archive))(t)
	blob := must.Get(store.Of(archive))(t)
	pin.Size, pin.SHA256 = blob.Size, blob.SHA256
	return dir, pin
}

// Of several repositories the first is used, as in resolving a tag.
func TestFetchMakesTheArchiveOfACommit(t *testing.T) {
	dir, pin := repository(t)
	f := newFetcher(t)
	f.Overrides["tool"] = []string{dir, t.TempDir()}
	e := lock.Entry{Source: pin}
	must.Succeed(t, f.Fetch(t.Context(), e, io.Discard))
	_, ok := f.Store.Path(pin.Blob())
	must.Hold(t, ok, "the archive is not in the store")
	// An archive in the store is not made again, so the repository may be gone.
	delete(f.Overrides, "tool")
	err := f.Fetch(t.Context(), e, io.Discard)
	check.That(t, err == nil, "%v", err)
	left, err := filepath.Glob(filepath.Join(f.Scratch, "source-*"))
	check.That(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

func TestFetchRefusesAnotherArchiveOfTheCommit(t *testing.T) {
	dir, pin := repository(t)
	pin.SHA256 = strings.Repeat("0", 64)
	f := newFetcher(t)
	f.Overrides["tool"] = []string{dir}
	err := f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), pin.SHA256), "got %v", err)
}

func TestFetchSaysWhichRepositoryItCannotReach(t *testing.T) {
	_, pin := repository(t)
	t.Setenv("https_proxy", "http://127.0.0.1:1")
	f := newFetcher(t)
	err := f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "source tool: reaching https://git.invalid/tool"),
		"got %v", err)
	all := diag.All(err)
	check.That(t, len(all) == 1 && strings.Contains(all[0].Hint, "--set source.tool=PATH"), "got %+v", all)
	f.Offline = true
	err = f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "tool-1.tar"), "offline: got %v", err)
}

// An archive in a pool comes from the same mirrors as packages.
func TestFetchTakesAnArchiveFromThePool(t *testing.T) {
	data := []byte("an archive")
	m := newMirror(t, map[string]answer{"tool_1.orig.tar.gz": serves(data)})
	f := newFetcher(t, m)
	pin := lock.SourcePin{
		File: pypi.File{Project: "tool", Version: "1", Filename: "tool_1.orig.tar.gz", Size: int64(len(data)), SHA256: digest(data)},
		Path: "pool/main/t/tool/tool_1.orig.tar.gz",
	}
	must.Succeed(t, f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard))
	got := m.requests()
	check.That(t, len(got) == 1 && got[0] == "/debian/pool/main/t/tool/tool_1.orig.tar.gz", "asked for %v", got)
}

// A released wheel comes from the index like a source distribution, or from the user's
// place.
func TestFetchBringsAReleasedWheel(t *testing.T) {
	data := noise(1, 500)
	m := newMirror(t, map[string]answer{"tool-1-py3-none-any.whl": serves(data)})
	pin := lock.SourcePin{File: file("tool", wheel, data), Python: "3.11"}
	f := newFetcher(t, m)
	uv, asked := fakeUV(t, map[string]pypi.File{m.URL + "/files/tool-1-py3-none-any.whl": pin.File})
	f.UV = uv
	err := f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard)
	check.That(t, err == nil && has(t, f, data) && strings.Contains(asked(), `dependencies = ["tool==1"]`), "asked %q, %v", asked(), err)

	local := must.File(t, "anything", data)
	f = newFetcher(t) // a call of uv fails the test
	f.Overrides["tool"] = []string{local}
	err = f.Fetch(t.Context(), lock.Entry{Source: pin}, io.Discard)
	check.That(t, err == nil && has(t, f, data), "from a local file: %v", err)
}

// For a cell with source and tests from git, both archives are made.
func TestFetchMakesEveryArchive(t *testing.T) {
	dir, pin := repository(t)
	_, tests := repository(t)
	tests.Project, tests.Filename = "tool-tests", "tool-tests-1.tar"
	archive := filepath.Join(t.TempDir(), "a.tar")
	must.Get(git.Make(t.Context(), t.TempDir(), git.Repository(dir), git.Tree{Commit: pin.Commit, Folder: "tool-tests-1"}, archive))(t)
	blob := must.Get(store.Of(archive))(t)
	tests.Commit, tests.Size, tests.SHA256 = pin.Commit, blob.Size, blob.SHA256
	f := newFetcher(t)
	f.Tests = true
	f.Overrides["tool"], f.Overrides["tool-tests"] = []string{dir}, []string{dir}
	must.Succeed(t, f.Fetch(t.Context(), lock.Entry{Source: pin, Tests: tests}, io.Discard))
	for _, b := range []store.Blob{pin.Blob(), tests.Blob()} {
		_, ok := f.Store.Path(b)
		check.That(t, ok, "%s is not in the store", b.Name)
	}
}
