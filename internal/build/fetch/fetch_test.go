package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/build/fetch"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestFetchBringsAllThatAnEntryNames(t *testing.T) {
	contents := map[string][]byte{}
	for i, name := range []string{"both", "build", "run", "source", "wheel", "runwheel"} {
		contents[name] = noise(i, 1000+i)
	}
	m := newMirror(t, map[string]answer{
		"both_1_amd64.deb": serves(contents["both"]), "build_1_amd64.deb": serves(contents["build"]), "run_1_amd64.deb": serves(contents["run"]),
		"tool-1.tar.gz": serves(contents["source"]), "a-1-py3-none-any.whl": serves(contents["wheel"]), "b-1-py3-none-any.whl": serves(contents["runwheel"]),
	})
	f := newFetcher(t, m)
	source, a, b := file("tool", sdist, contents["source"]), file("a", wheel, contents["wheel"]), file("b", wheel, contents["runwheel"])
	uv, asked := fakeUV(t, map[string]pypi.File{
		m.URL + "/files/tool-1.tar.gz": source, m.URL + "/files/a-1-py3-none-any.whl": a, m.URL + "/files/b-1-py3-none-any.whl": b,
	})
	f.UV = uv
	e := lock.Entry{
		Source:  lock.SourcePin{File: source},
		Image:   lock.Image{Pin: lock.ImagePin{Packages: []deb.Package{pack("both", contents["both"]), pack("build", contents["build"])}}, Wheels: []pypi.File{a}},
		Runtime: lock.Image{Pin: lock.ImagePin{Packages: []deb.Package{pack("both", contents["both"]), pack("run", contents["run"])}}, Wheels: []pypi.File{a, b}},
	}
	must.Succeed(t, f.Fetch(t.Context(), e, io.Discard))
	for name, data := range contents {
		check.That(t, has(t, f, data), "%s is not there", name)
	}
	want := []string{
		"/debian/pool/main/both_1_amd64.deb", "/debian/pool/main/build_1_amd64.deb", "/debian/pool/main/run_1_amd64.deb",
		"/files/a-1-py3-none-any.whl", "/files/b-1-py3-none-any.whl", "/files/tool-1.tar.gz",
	}
	check.Same(t, "each file once", want, m.requests())
	check.That(t, strings.Contains(asked(), `dependencies = ["a==1", "b==1", "tool==1"]`), "uv was asked for %q", asked())

	// Files in the store are requested neither from a mirror nor from uv.
	f.UV = func(context.Context) (pypi.Tool, error) { t.Error("uv was asked for"); return pypi.Tool{}, nil }
	var said bytes.Buffer
	if err := f.Fetch(t.Context(), e, &said); err != nil || said.String() != "all files are in the store\n" || len(m.requests()) != len(want) {
		t.Errorf("%v, %q, %v", err, said.String(), m.requests())
	}
}

// One error names the file, the expected and received content, the place, and the
// remedy. Nothing is kept.
func TestWhatAFaultSays(t *testing.T) {
	data := noise(1, 2000)
	other := noise(2, 2000)
	what := "fetching a_1_amd64.deb (sha256 " + digest(data) + ")"
	for name, c := range map[string]struct {
		answer answer
		want   string
	}{
		"other bytes":  {serves(other), "wrong content: expected sha256 " + digest(data) + ", got " + digest(other)},
		"not modified": {says(304), "the server answered 304 Not Modified"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, map[string]answer{"a_1_amd64.deb": c.answer})
			f := newFetcher(t, m)
			f.Mirrors = func() []string { return []string{strings.Replace(m.URL, "http://", "http://me:hush@", 1)} }
			var log bytes.Buffer
			err := f.Fetch(t.Context(), entry(t, f, pack("a", data)), &log)
			all := diag.All(err)
			must.Hold(t, len(all) == 1 && all[0].Code == diag.Fetch, "got %v", err)
			if got, want := all[0].Error(), what+": "+m.URL+"/pool/main/a_1_amd64.deb: "+c.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			check.That(t, strings.Contains(all[0].Hint, "--set source.a=PATH|URL"), "the hint is %q", all[0].Hint)
			check.That(t, strings.Contains(log.String(), what) && !strings.Contains(log.String()+err.Error(), "hush"),
				"the log is %s", log.String())
			check.That(t, !has(t, f, data) && !has(t, f, other), "something was kept")
		})
	}
}

func TestAFaultListsEveryPlace(t *testing.T) {
	data := noise(1, 100)
	m := newMirror(t, nil)
	f := newFetcher(t, m, newMirror(t, map[string]answer{"a_1_amd64.deb": says(403)}))
	f.Overrides["a"] = []string{"/absent/a.deb"}
	f.Snapshot = "http://127.0.0.1:1/"
	err := f.Fetch(t.Context(), entry(t, f, pack("a", data)), io.Discard)
	lines := strings.Split(fmt.Sprint(err), "\n  ")
	must.Hold(t, len(lines) == 5 && lines[0] == "fetching a_1_amd64.deb (sha256 "+digest(data)+"): all 4 places failed" && diag.CodeOf(err) == diag.Fetch,
		"got %v", err)
	for i, want := range []string{"/absent/a.deb: ", "404", "403", "http://127.0.0.1:1/archive/debian/20261121T000000Z/pool/main/a_1_amd64.deb: "} {
		check.That(t, strings.Contains(lines[1+i], want), "line %d is %s, want %s", 1+i, lines[1+i], want)
	}

	f = newFetcher(t)
	err = f.Fetch(t.Context(), entry(t, f, pack("a", data)), io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "no place to fetch it from"), "without a mirror: %v", err)
}

// A failed file does not stop the others.
func TestFetchReportsEveryFault(t *testing.T) {
	good, other := noise(1, 1000), noise(9, 1000)
	answers := map[string]answer{"good_1_amd64.deb": serves(good), "evil_1_amd64.deb": serves(other), "closed_1_amd64.deb": says(403)}
	m := newMirror(t, answers)
	f := newFetcher(t, m)
	e := entry(t, f, pack("gone", noise(2, 1000)), pack("evil", noise(3, 1000)), pack("good", good), pack("closed", noise(4, 1000)))
	var log bytes.Buffer
	err := f.Fetch(t.Context(), e, &log)
	var got []string
	for _, e := range diag.All(err) {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Error(), "fetching "), " ")
		got = append(got, name)
		check.That(t, strings.Contains(log.String(), e.Error()), "the log lacks %v", e)
	}
	// Errors are in the order of the lock, whatever the order of the answers.
	check.Same(t, "values", []string{"gone_1_amd64.deb", "evil_1_amd64.deb", "closed_1_amd64.deb"}, got)
	check.That(t, has(t, f, good) && !has(t, f, other), "the good one is not kept, or an evil one is")
}

// With a cancelled context, Fetch returns one error and sends no request.
func TestFetchAfterTheEnd(t *testing.T) {
	m := newMirror(t, nil)
	f := newFetcher(t, m)
	var packages []deb.Package
	for i := range 50 {
		packages = append(packages, pack(fmt.Sprint("p", i), noise(i, 10)))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("another cell failed")
	cancel(cause)
	var log bytes.Buffer
	err := f.Fetch(ctx, entry(t, f, packages...), &log)
	check.That(t, errors.Is(err, cause) && err.Error() == "fetching 50 files: another cell failed" && len(m.requests()) == 0 && log.Len() == 0,
		"%v, %q, %s", err, m.requests(), log.String())
}

func TestOtherPlaces(t *testing.T) {
	debian, wheelData, source := noise(1, 1000), noise(2, 1000), noise(3, 1000)
	other := newMirror(t, map[string]answer{"a.deb": serves(debian), "w.whl": serves(wheelData), "s.tar.gz": serves(source), "evil": serves(noise(4, 1000))})
	dir := t.TempDir()
	local := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, data, 0o644))
		return path
	}
	for name, c := range map[string]struct {
		places map[string][]string
		asked  int // requests to the public mirror
	}{
		"paths":                     {map[string][]string{"a": {local("a b.deb", debian)}, "w": {local("w.whl", wheelData)}, "tool": {local("s.tar.gz", source)}}, 0},
		"file URLs":                 {map[string][]string{"a": {"file://" + local("a.deb", debian)}, "w": {"file://" + local("w.whl", wheelData)}, "tool": {"file://" + local("s.tar.gz", source)}}, 0},
		"a mirror":                  {map[string][]string{"a": {other.URL + "/a.deb"}, "w": {other.URL + "/w.whl"}, "tool": {other.URL + "/s.tar.gz"}}, 0},
		"the second of two":         {map[string][]string{"a": {"/absent", local("a.deb", debian)}, "w": {other.URL + "/evil", local("w.whl", wheelData)}, "tool": {local("empty", nil), local("s.tar.gz", source)}}, 0},
		"a mirror without the file": {map[string][]string{"a": {other.URL + "/evil"}, "w": {local("w.whl", wheelData)}, "tool": {local("s.tar.gz", source)}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirror(t, map[string]answer{"a_1_amd64.deb": serves(debian)})
			f := newFetcher(t, m)
			f.Overrides = c.places
			e := lock.Entry{Source: lock.SourcePin{File: file("tool", sdist, source)}, Image: lock.Image{
				Pin: lock.ImagePin{Packages: []deb.Package{pack("a", debian)}}, Wheels: []pypi.File{file("w", wheel, wheelData)},
			}}
			must.Succeed(t, f.Fetch(t.Context(), e, io.Discard))
			check.That(t, has(t, f, debian) && has(t, f, wheelData) && has(t, f, source), "something is not there")
			got := m.requests()
			check.That(t, len(got) == c.asked, "the mirror was asked for %q", got)
		})
	}
	data, err := os.ReadFile(filepath.Join(dir, "a.deb"))
	check.That(t, err == nil && bytes.Equal(data, debian), "the user's file was touched: %v", err)
}

func TestOffline(t *testing.T) {
	there, absent := noise(1, 100), noise(2, 100)
	m := newMirror(t, map[string]answer{"absent_1_amd64.deb": serves(absent)})
	f := newFetcher(t, m)
	f.Offline = true
	e := entry(t, f, pack("there", there), pack("absent", absent))
	e.Runtime.Wheels = []pypi.File{file("w", wheel, noise(3, 100))}
	_, err := f.Store.Put(bytes.NewReader(there))
	must.Succeed(t, err)
	err = f.Fetch(t.Context(), e, io.Discard)
	want := "2 files are not in the store, and --offline was given: absent_1_amd64.deb, w-1-py3-none-any.whl"
	if diff := cmp.Diff(want, err.Error()); diff != "" || diag.CodeOf(err) != diag.Fetch || len(m.requests()) > 0 {
		t.Errorf("%v, asked for %q (-want +got):\n%s", diag.CodeOf(err), m.requests(), diff)
	}
	e.Runtime.Wheels, e.Image.Pin.Packages = nil, e.Image.Pin.Packages[:1]
	err = f.Fetch(t.Context(), e, io.Discard)
	check.That(t, err == nil, "everything is there: %v", err)
}

func TestWhatTheIndexDoesNotHave(t *testing.T) {
	here, gone := noise(1, 100), noise(2, 100)
	m := newMirror(t, map[string]answer{"here": serves(here)})
	f := newFetcher(t)
	uv, _ := fakeUV(t, map[string]pypi.File{m.URL + "/here": file("here", wheel, here)})
	f.UV = uv
	e := lock.Entry{Source: lock.SourcePin{File: file("gone", sdist, gone)}, Image: lock.Image{Wheels: []pypi.File{file("here", wheel, here)}}}
	err := f.Fetch(t.Context(), e, io.Discard)
	problem, ok := errors.AsType[*diag.Error](err)
	if !ok || problem.Code != diag.Fetch || !strings.Contains(err.Error(), "the Python package index does not have gone-1.tar.gz (sha256 "+digest(gone)+")") ||
		!strings.Contains(problem.Hint, "--set source.NAME=") {
		t.Errorf("got %v", err)
	}
	f.UV = func(context.Context) (pypi.Tool, error) { return pypi.Tool{}, diag.Errorf(diag.Fetch, "no uv") }
	err = f.Fetch(t.Context(), e, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "no uv"), "got %v", err)
}

// Six files at a time: neither sequential nor all at once.
func TestFetchesAFewAtATime(t *testing.T) {
	const six, files = 6, 20
	var mu sync.Mutex
	now, most := 0, 0
	full := make(chan struct{})
	answers, packages := map[string]answer{}, []deb.Package(nil)
	for i := range files {
		data := noise(i, 100)
		p := pack(fmt.Sprint("p", i), data)
		packages = append(packages, p)
		answers[filepath.Base(p.Path)] = func(n int, w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			if most = max(most, now); now == six {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			select {
			case <-full:
			case <-time.After(5 * time.Second):
			}
			mu.Lock()
			now--
			mu.Unlock()
			serves(data)(n, w, r)
		}
	}
	f := newFetcher(t, newMirror(t, answers))
	err := f.Fetch(t.Context(), entry(t, f, packages...), io.Discard)
	check.That(t, err == nil && most == six, "%d at a time, %v", most, err)
}

func TestProgress(t *testing.T) {
	a, b := noise(1, 3e6), noise(2, 1e6)
	f := newFetcher(t, newMirror(t, map[string]answer{"a_1_amd64.deb": serves(a), "b_1_amd64.deb": serves(b)}))
	var log bytes.Buffer
	must.Succeed(t, f.Fetch(t.Context(), entry(t, f, pack("a", a), pack("b", b)), &log))
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	check.That(t, slices.IsSorted(lines) && len(lines) >= 4 && len(lines) <= 101, "%d lines:\n%s", len(lines), log.String())
	check.Same(t, "the last", "4 of 4 MB, 2 of 2 files", lines[len(lines)-1])
}

// A damaged file in the store is noticed before a build reads it, reported, and fetched
// again. Offline it counts as missing.
func TestFetchBringsAgainWhatIsDamaged(t *testing.T) {
	data := noise(1, 1000)
	m := newMirror(t, map[string]answer{"a_1_amd64.deb": serves(data)})
	f := newFetcher(t, m)
	e := entry(t, f, pack("a", data))
	must.Succeed(t, f.Fetch(t.Context(), e, io.Discard))
	spoil := func() {
		path, _ := f.Store.Path(pack("a", data).Blob())
		must.Succeed(t, os.Chmod(path, 0o644), os.WriteFile(path, noise(2, 1000), 0o644))
	}
	spoil()
	var log bytes.Buffer
	err := f.Fetch(t.Context(), e, &log)
	check.That(t, err == nil && has(t, f, data) && len(m.requests()) == 2, "%v, asked for %v", err, m.requests())
	want := "verifying a_1_amd64.deb: the file in the store is damaged: expected sha256 " + digest(data)
	check.That(t, strings.Contains(log.String(), want), "the log is %s", log.String())
	spoil()
	f.Offline = true
	err = f.Fetch(t.Context(), e, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), digest(data)), "offline: %v", err)
}

func TestBlobsAndWhatIsMissing(t *testing.T) {
	f := newFetcher(t)
	e := entry(t, f, pack("a", noise(1, 10)), pack("b", noise(2, 10)))
	e.Runtime = lock.Image{Pin: e.Image.Pin, Wheels: []pypi.File{file("w", wheel, noise(3, 10))}}
	got := fetch.Blobs(e, e)
	check.That(t, len(got) == 4, "%d files: %v", len(got), got)
	err := f.Missing([]lock.Entry{e, e}, io.Discard)
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.HasPrefix(err.Error(), "3 files are not in the store"), "%v", err)
	for _, seed := range []int{1, 2, 3} {
		must.Get(f.Store.Put(bytes.NewReader(noise(seed, 10))))(t)
	}
	err = f.Missing([]lock.Entry{e}, io.Discard)
	check.That(t, err == nil, "nothing is missing: %v", err)
}
