package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/test/kit/must"
)

var sansPath = cmpopts.IgnoreFields(File{}, "Path")

func push(t *testing.T, r *Repository, p Package) (string, bool) {
	t.Helper()
	digest, existed, err := r.Push(t.Context(), p, nil)
	must.Succeed(t, err)
	return digest, existed
}

func TestPushAndFetch(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			p := sample(t, "a")
			var last, total int64
			digest, existed, err := at.open(t).Push(t.Context(), p, func(d, n int64) { last, total = d, n })
			if err != nil || existed {
				t.Fatalf("existed %v, %v", existed, err)
			}
			if want := p.Files[0].Size + p.Files[1].Size + 3000 + 2; last != want || total != want {
				t.Errorf("progress ended at %d of %d, want %d", last, total, want)
			}
			reads(t, at.open(t), digest, p)
		})
	}
}

// reads pulls a package and compares it with the pushed package.
func reads(t *testing.T, r *Repository, digest string, p Package) {
	t.Helper()
	must.Succeed(t, r.Tag(t.Context(), digest, "v1", TagOptions{}))
	if got, err := r.Resolve(t.Context(), "v1"); got != digest || err != nil {
		t.Errorf("the tag is %s, %v; want %s", got, err, digest)
	}
	if tags, err := r.Tags(t.Context()); err != nil || len(tags) != 1 || tags[0] != "v1" {
		t.Errorf("tags %q, %v", tags, err)
	}
	m, err := r.Manifest(t.Context(), digest)
	want := Manifest{Digest: digest, ArtifactType: wheelType, Files: p.Files, Annotations: p.Annotations}
	if diff := cmp.Diff(want, m, sansPath); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	found, err := r.Referrers(t.Context(), digest)
	if err != nil || len(found) != len(p.Referrers) {
		t.Fatalf("%d referrers, %v", len(found), err)
	}
	dir := t.TempDir()
	for i, f := range append(m.Files, found[0].Files[0], found[1].Files[0]) {
		if i >= len(m.Files) && (found[i-len(m.Files)].Fault != nil || found[i-len(m.Files)].ArtifactType != proofType) {
			t.Errorf("referrer: %+v", found[i-len(m.Files)])
		}
		var done int64
		if err := r.Fetch(t.Context(), f, dir, func(d, _ int64) { done = d }); err != nil || done != f.Size {
			t.Errorf("%s: %d bytes, %v", f.Name, done, err)
		}
	}
	for _, f := range append(p.Files, p.Referrers[0].File, p.Referrers[1].File) {
		same(t, f.Path, filepath.Join(dir, f.Name))
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	if err != nil || err2 != nil || string(x) != string(y) {
		t.Errorf("%s and %s differ: %v, %v", a, b, err, err2)
	}
}

func TestPushTwiceSendsNothing(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			first, _ := push(t, at.open(t), sample(t, "a"))
			at.forget()
			second, existed := push(t, at.open(t), sample(t, "a")) // from other paths
			if first != second || !existed {
				t.Errorf("%s and then %s, existed %v", first, second, existed)
			}
			if n := at.count("PUT", "POST", "PATCH"); n != 0 {
				t.Errorf("%d requests that write: %q", n, at.asked)
			}
		})
	}
}

func TestOnlyTheNewReferrerIsSent(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			p := sample(t, "a")
			push(t, at.open(t), p)
			at.forget()
			p.Referrers = append(p.Referrers, Referrer{ArtifactType: proofType, File: file(t, "gpu.json", noise("gpu", 77))})
			digest, existed := push(t, at.open(t), p)
			if existed || at.uploaded.Load() != 77 {
				t.Errorf("existed %v, %d bytes sent", existed, at.uploaded.Load())
			}
			if found, err := at.open(t).Referrers(t.Context(), digest); err != nil || len(found) != 3 {
				t.Errorf("%d referrers, %v", len(found), err)
			}
		})
	}
}

// The registry is killed while it receives the second file, and restarted.
func TestPushGoesOn(t *testing.T) {
	at := newPlace(t, false)
	p := sample(t, "a")
	p.Files = append(p.Files, file(t, "second.whl", noise("second", 3<<20)), file(t, "third.whl", noise("third", 1<<20)))
	var once sync.Once
	first := at.Server
	at.breaks(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.ContentLength == 3<<20 && strings.Contains(req.URL.RawQuery, p.Files[2].SHA256) {
			_, _ = io.CopyN(io.Discard, req.Body, 1<<20)
			once.Do(func() { first.Listener.Close(); first.CloseClientConnections() })
			return true
		}
		return false
	})
	_, _, err := at.open(t).Push(t.Context(), p, nil)
	if diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "second.whl") {
		t.Fatalf("got %v", err)
	}
	before := at.uploaded.Load()
	at.mend()
	at.forget()
	at.start(t, at.addr)
	digest, existed := push(t, at.open(t), p)
	want := p.Files[2].Size + p.Files[3].Size + 3000
	if got := at.uploaded.Load(); got != want || existed {
		t.Errorf("%d bytes were sent afterwards, want %d of %d", got, want, before)
	}
	t.Logf("%d bytes before the end, %d afterwards", before, want)
	reads(t, at.open(t), digest, Package{Files: p.Files, Annotations: p.Annotations, Referrers: p.Referrers})
}

// on answers the first n requests with this method and with path in their URL path.
func on(method, path string, n int32, answer func(http.ResponseWriter)) func(http.ResponseWriter, *http.Request) bool {
	var left atomic.Int32
	left.Store(n)
	return func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != method || !strings.Contains(req.URL.Path, path) || left.Add(-1) < 0 {
			return false
		}
		answer(w)
		return true
	}
}

func says(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
}

const secret = "hunter2hunter2"

func TestRefusalsOfAPush(t *testing.T) {
	where := map[string][2]string{
		"looking": {"HEAD", "/blobs/"}, "starting": {"POST", "/blobs/uploads/"},
		"sending": {"PUT", "/blobs/uploads/"}, "the manifest": {"PUT", "/manifests/"},
	}
	for step, at := range where {
		for _, status := range []int{400, 401, 403, 404, 405, 409, 413, 429, 500, 503, 507} {
			if step == "looking" && status == 404 {
				continue // a valid answer
			}
			t.Run(fmt.Sprint(step, status), func(t *testing.T) {
				place := newPlace(t, true)
				body := `{"errors":[{"code":"NO_LUCK","message":"see https://x.example/?token=` + secret + ` now\u001b[1m"}]}`
				place.breaks(on(at[0], at[1], 1000, says(status, body)))
				_, _, err := place.open(t).Push(t.Context(), sample(t, "a"), nil)
				refusal, ok := errors.AsType[*Refusal](err)
				if !ok || refusal.Status != status || diag.CodeOf(err) != diag.Publish {
					t.Fatalf("got %v", err)
				}
				e, _ := errors.AsType[*diag.Error](err)
				if status != 400 && e.Hint == "" || !strings.Contains(err.Error(), place.open(t).String()) {
					t.Errorf("%v (%s)", err, e.Hint)
				}
				if strings.Contains(err.Error()+e.Hint, secret) || strings.Contains(err.Error(), "\x1b") {
					t.Errorf("it shows too much: %v", err)
				}
				want := 1
				if isPassing(status) {
					want = quick.Tries
				}
				if place.uploaded.Load() != 0 && at[0] != "PUT" {
					t.Errorf("%d bytes were sent to be refused", place.uploaded.Load())
				}
				if n := place.count(at[0] + " /v2/wheels/horovod" + at[1]); n != want {
					t.Errorf("asked %d times, want %d", n, want)
				}
			})
		}
	}
}

// If a registry confirms a file and does not have it, no manifest may name the file.
// Push waits for a late registry.
func TestWhatIsTakenAndNotKept(t *testing.T) {
	at := newPlace(t, true)
	p := sample(t, "a")
	at.breaks(on("PUT", "/blobs/uploads/", 1, says(201, "")))
	_, _, err := at.open(t).Push(t.Context(), p, nil)
	if e, ok := errors.AsType[*diag.Error](err); !errors.Is(err, errLost) || !ok || e.Code != diag.Publish || e.Hint == "" {
		t.Errorf("got %v", err)
	}
	if n := at.count("PUT /v2/wheels/horovod/manifests/"); n != 0 {
		t.Errorf("%d manifests were sent", n)
	}
	at = newPlace(t, true) // the first check after the upload comes too early
	last := "/blobs/sha256:" + p.Referrers[1].File.SHA256
	looks := 0
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodHead || !strings.HasSuffix(req.URL.Path, last) {
			return false
		}
		if looks++; looks == 2 {
			w.WriteHeader(http.StatusNotFound)
		}
		return looks == 2
	})
	digest, _ := push(t, at.open(t), p)
	if looks != 3 {
		t.Errorf("looked %d times", looks)
	}
	reads(t, at.open(t), digest, p)
}

// A refused file is not sent. If the registry refuses it during the upload, its answer
// is still read.
func TestAFileThatIsTooLarge(t *testing.T) {
	for _, taken := range []int64{0, 1 << 20} {
		at := newPlace(t, true)
		at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodPut || req.ContentLength < expectAbove {
				return false
			}
			_, _ = io.CopyN(io.Discard, req.Body, taken)
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(200 * time.Millisecond) // a connection that is closed at once may lose the answer
			return true
		})
		p := Package{ArtifactType: wheelType, Files: []File{file(t, "large.whl", noise("a", 30<<20))}}
		var most int64
		_, _, err := at.open(t).Push(t.Context(), p, func(done, _ int64) { most = max(most, done) })
		if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Status != http.StatusRequestEntityTooLarge {
			t.Errorf("after %d bytes: %v", taken, err)
		}
		if taken == 0 && most > 1000 {
			t.Errorf("%d bytes were sent to be refused", most)
		}
		t.Logf("refused after %d bytes: %d were read", taken, most)
	}
}

// One of several registries behind a name may not know content sent to another.
func TestARegistryThatIsBehind(t *testing.T) {
	for code, where := range map[string]string{"BLOB_UPLOAD_UNKNOWN": "/blobs/uploads/", "MANIFEST_BLOB_UNKNOWN": "/manifests/"} {
		at := newPlace(t, true)
		at.breaks(on("PUT", where, 2, says(404, `{"errors":[{"code":"DIGEST_INVALID"},{"code":"`+code+`"}]}`)))
		push(t, at.open(t), sample(t, "a"))
	}
}

func TestPushWaitsAsAsked(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		at := newPlace(t, true)
		at.breaks(on("PUT", "/blobs/uploads/", 1, func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
		}))
		before := time.Now()
		push(t, at.open(t), sample(t, "a"))
		if took := time.Since(before); took < time.Second || took > 20*time.Second {
			t.Errorf("%d: it took %s", status, took)
		}
	}
}

func TestPushTriesAgain(t *testing.T) {
	for step, answer := range map[string]func(http.ResponseWriter){
		"500": says(500, ""),
		"a connection that breaks": func(w http.ResponseWriter) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		},
	} {
		for _, at := range [][2]string{{"HEAD", "/blobs/"}, {"POST", "/blobs/"}, {"PUT", "/blobs/"}, {"PUT", "/manifests/"}, {"GET", "/referrers/"}} {
			place := newPlace(t, true)
			place.breaks(on(at[0], at[1], 2, answer))
			p := sample(t, "a")
			if _, _, err := place.open(t).Push(t.Context(), p, nil); err != nil {
				t.Errorf("%s at %s: %v", step, at, err)
			}
		}
	}
}

func TestAFileThatChangedIsNotStored(t *testing.T) {
	for name, content := range map[string][]byte{
		"other bytes": noise("b", 3<<20), "shorter": noise("a", 2<<20), "longer": noise("a", 4<<20), "nothing": nil,
	} {
		at := newPlace(t, true)
		p := sample(t, "a")
		must.Succeed(t, os.WriteFile(p.Files[0].Path, content, 0o600))
		_, _, err := at.open(t).Push(t.Context(), p, nil)
		if !errors.Is(err, errChanged) || diag.CodeOf(err) != diag.Publish || at.count("POST") > 2 {
			t.Errorf("%s: %v after %d uploads", name, err, at.count("POST"))
		}
		if _, err := at.open(t).Tags(t.Context()); !isMissing(err) {
			t.Errorf("%s: something is there: %v", name, err)
		}
	}
}

// The file grows or shrinks during the upload.
func TestAFileThatChangesOnTheWay(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"cut":     func(path string) error { return os.Truncate(path, 2<<20) },
		"changed": func(path string) error { return os.WriteFile(path, noise("c", 30<<20), 0o600) },
	} {
		at := newPlace(t, true)
		f := file(t, "large.whl", noise("a", 30<<20))
		var once sync.Once
		_, _, err := at.open(t).Push(t.Context(), Package{ArtifactType: wheelType, Files: []File{f}}, func(done, _ int64) {
			if done > 1000 {
				once.Do(func() {
					if err := change(f.Path); err != nil {
						t.Error(err)
					}
				})
			}
		})
		if !errors.Is(err, errChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if found, _ := at.open(t).repo.Blobs().Exists(t.Context(), f.descriptor()); found {
			t.Errorf("%s: it was stored", name)
		}
	}
}

func TestWhatIsNoPackage(t *testing.T) {
	for want, change := range map[string]func(*Package){
		`"../x": the name`:            func(p *Package) { p.Files[0].Name = "../x" },
		`two files have the name`:     func(p *Package) { p.Files[0].Name = p.Files[1].Name },
		`is not a sha256`:             func(p *Package) { p.Files[0].SHA256 = "abc" },
		`"wheel" is not a media type`: func(p *Package) { p.ArtifactType = "wheel" },
		`"a b" is not a media type`:   func(p *Package) { p.Files[0].MediaType = "a b" },
		`-1 bytes`:                    func(p *Package) { p.Files[0].Size = -1 },
		`0 files`:                     func(p *Package) { p.Files = nil },
		`257 files`:                   func(p *Package) { p.Files = make([]File, 257) },
		`1025 referrers`:              func(p *Package) { p.Referrers = make([]Referrer, 1025) },
		`the referrer "a/b"`:          func(p *Package) { p.Referrers[0].File.Name = "a/b" },
		`registries accept`:           func(p *Package) { p.Annotations["x"] = strings.Repeat("x", maxManifest) },
		`entry.json`:                  func(p *Package) { p.Files[1].Path += ".missing" },
		`the file changed since`:      func(p *Package) { p.Files[0].Path = filepath.Dir(p.Files[0].Path) },
	} {
		at, p := newPlace(t, true), sample(t, "a")
		change(&p)
		_, _, err := at.open(t).Push(t.Context(), p, nil)
		if err == nil || !strings.Contains(err.Error(), want) || diag.CodeOf(err) != diag.Publish {
			t.Errorf("want %q, got %v", want, err)
		}
		if n := at.count("PUT /v2/wheels/horovod/manifests/"); n > 0 {
			t.Errorf("%s: %d manifests were stored", want, n)
		}
	}
}

func TestAnEmptyFile(t *testing.T) {
	at := newPlace(t, true)
	f := file(t, "empty", nil)
	digest, _ := push(t, at.open(t), Package{ArtifactType: wheelType, Files: []File{f}})
	m, err := at.open(t).Manifest(t.Context(), digest)
	must.Succeed(t, err)
	dir := t.TempDir()
	must.Succeed(t, at.open(t).Fetch(t.Context(), m.Files[0], dir, nil))
	same(t, f.Path, filepath.Join(dir, "empty"))
}

// Several publishers push at once, each with its own client.
func TestPublishersAtOnce(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			digests := make([]string, 8)
			var all sync.WaitGroup
			for i := range digests {
				r, p := at.open(t), sample(t, fmt.Sprint(i%2))
				all.Go(func() {
					var err error
					if digests[i], _, err = r.Push(t.Context(), p, nil); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for i, d := range digests {
				if d != digests[i%2] || digests[0] == digests[1] {
					t.Errorf("%d has the digest %s", i, d)
				}
			}
			for _, d := range digests[:2] {
				found, err := at.open(t).Referrers(t.Context(), d)
				if err != nil || len(found) != 2 {
					t.Errorf("%d referrers, %v", len(found), err)
				}
			}
		})
	}
}

// Without the referrers API, publishers may overwrite each other's entries in the list
// of referrers. Each adds its own missing entries again.
func TestAReferrerThatWasOverwrittenComesBack(t *testing.T) {
	at := newPlace(t, false)
	p := sample(t, "a")
	bare := p
	bare.Referrers = nil
	digest, _ := push(t, at.open(t), bare)
	tag := "/manifests/" + strings.Replace(digest, ":", "-", 1)
	var lost atomic.Int32
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, tag) && lost.Add(1) == 2 {
			w.WriteHeader(http.StatusCreated) // as if another publisher's list came right after
			return true
		}
		return false
	})
	push(t, at.open(t), p)
	if found, err := at.open(t).Referrers(t.Context(), digest); err != nil || len(found) != 2 || lost.Load() < 3 {
		t.Errorf("%d referrers, %v, the list was written %d times", len(found), err, lost.Load())
	}
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, tag) {
			w.WriteHeader(http.StatusCreated)
			return true
		}
		return false
	})
	p.Referrers = append(p.Referrers, Referrer{ArtifactType: proofType, File: file(t, "new.json", []byte("{}\n"))})
	if _, _, err := at.open(t).Push(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "does not list") {
		t.Errorf("a list that never holds it: %v", err)
	}
}

func TestASilentRegistry(t *testing.T) {
	at := newPlace(t, true)
	release := make(chan struct{})
	defer close(release)
	at.breaks(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPut {
			<-release
		}
		return false
	})
	r := at.open(t)
	r.silence, r.policy = 100*time.Millisecond, slow
	_, _, err := r.Push(t.Context(), sample(t, "a"), nil)
	if diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "sent nothing for 100ms") || at.count("PUT") != 2 {
		t.Errorf("got %v after %d", err, at.count("PUT"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	r.silence, r.policy = time.Minute, retry.Default
	if _, _, err := r.Push(ctx, sample(t, "b"), nil); diag.CodeOf(err) != diag.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
}
