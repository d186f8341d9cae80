package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

var sansPath = cmpopts.IgnoreFields(File{}, "Path")

func push(t *testing.T, r *Repository, p Package) string {
	t.Helper()
	return must.Get(r.Push(t.Context(), p))(t)
}

func TestPushAndFetch(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			p := sample(t, "a")
			p.Files = append(p.Files, file(t, "empty", nil))
			reads(t, at.open(t), push(t, at.open(t), p), p)
		})
	}
}

// reads pulls a package and compares it with the pushed package.
func reads(t *testing.T, r *Repository, digest string, p Package) {
	t.Helper()
	must.Succeed(t, r.Tag(t.Context(), digest, "v1", false))
	got, err := r.Resolve(t.Context(), "v1")
	check.That(t, got == digest && err == nil, "the tag is %s, %v; want %s", got, err, digest)
	m, err := r.Manifest(t.Context(), digest)
	want := Manifest{Digest: digest, ArtifactType: wheelType, Files: p.Files, Annotations: map[string]string{ocispec.AnnotationCreated: created}}
	maps.Copy(want.Annotations, p.Annotations)
	diff := cmp.Diff(want, m, sansPath)
	check.That(t, err == nil && diff == "", "%v\n%s", err, diff)
	found, err := r.Referrers(t.Context(), digest)
	must.Hold(t, err == nil && len(found) == len(p.Referrers), "%d referrers, %v", len(found), err)
	dir := t.TempDir()
	for i, f := range append(m.Files, found[0].Files[0], found[1].Files[0]) {
		check.That(t, i < len(m.Files) || found[i-len(m.Files)].ArtifactType == proofType, "referrer: %+v", found)
		err := r.Fetch(t.Context(), f, dir)
		check.That(t, err == nil, "%s: %v", f.Name, err)
	}
	for _, f := range append(p.Files, p.Referrers[0].File, p.Referrers[1].File) {
		same(t, f.Path, filepath.Join(dir, f.Name))
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	check.That(t, err == nil && err2 == nil && string(x) == string(y), "%s and %s differ: %v, %v", a, b, err, err2)
}

// A second push sends what is missing, and nothing else.
func TestOnlyWhatIsNewIsSent(t *testing.T) {
	for name, referrers := range modes {
		t.Run(name, func(t *testing.T) {
			at := newPlace(t, referrers)
			first := push(t, at.open(t), sample(t, "a"))
			at.forget()
			p := sample(t, "a") // from other paths
			second := push(t, at.open(t), p)
			n := at.count("PUT", "POST", "PATCH")
			check.That(t, first == second && n == 0, "%s and then %s, %d requests that write: %q", first, second, n, at.asked)
			p.Referrers = append(p.Referrers, Referrer{ArtifactType: proofType, File: file(t, "gpu.json", noise("gpu", 77))})
			push(t, at.open(t), p)
			check.That(t, at.uploaded.Load() == 77, "%d bytes sent", at.uploaded.Load())
			more := Referrer{ArtifactType: proofType, File: file(t, "more.json", noise("more", 7))}
			err := at.open(t).Refer(t.Context(), first, []Referrer{more})
			check.That(t, err == nil && at.uploaded.Load() == 84, "%v, %d bytes sent", err, at.uploaded.Load())
			found, err := at.open(t).Referrers(t.Context(), first)
			check.That(t, err == nil && len(found) == 4, "%d referrers, %v", len(found), err)
		})
	}
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
		for _, status := range []int{400, 401, 403, 404, 413, 429, 503} {
			if step == "looking" && status == 404 {
				continue // a valid answer
			}
			t.Run(fmt.Sprint(step, status), func(t *testing.T) {
				place := newPlace(t, true)
				body := `{"errors":[{"code":"NO_LUCK","message":"see https://x.example/?token=` + secret + ` now\u001b[1m"}]}`
				place.breaks(on(at[0], at[1], 1000, says(status, body)))
				_, err := place.open(t).Push(t.Context(), sample(t, "a"))
				e, ok := errors.AsType[*diag.Error](err)
				if !ok || e.Code != diag.Publish || e.Hint == "" || !strings.Contains(err.Error(), fmt.Sprint("answered ", status)) || !strings.Contains(err.Error(), "oci://"+place.addr) {
					t.Fatalf("got %v", err)
				}
				check.That(t, !strings.Contains(err.Error()+e.Hint, secret) && !strings.Contains(err.Error(), "\x1b"), "it shows too much: %v", err)
				want := 1
				if status == 429 || status == 503 {
					want = quick.Tries
				}
				check.Same(t, "requests", want, place.count(at[0]+" /v2/wheels/horovod"+at[1]))
			})
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
			_, err := place.open(t).Push(t.Context(), sample(t, "a"))
			check.That(t, err == nil, "%s at %s: %v", step, at, err)
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
		_, err := at.open(t).Push(t.Context(), p)
		check.That(t, errors.Is(err, errChanged) && diag.CodeOf(err) == diag.Publish && at.count("POST") <= 2, "%s: %v after %d uploads", name, err, at.count("POST"))
		found, _ := at.open(t).repo.Blobs().Exists(t.Context(), p.Files[0].descriptor())
		check.That(t, !found, "%s: it was stored", name)
		check.Same(t, name+": manifests sent", 0, at.count("PUT /v2/wheels/horovod/manifests/"))
	}
}

func TestWhatIsNoPackage(t *testing.T) {
	for want, change := range map[string]func(*Package){
		`"../x": the name`:            func(p *Package) { p.Files[0].Name = "../x" },
		`two files have the name`:     func(p *Package) { p.Files[0].Name = p.Files[1].Name },
		`is not a sha256`:             func(p *Package) { p.Files[0].SHA256 = "abc" },
		`wheel: invalid media type`:   func(p *Package) { p.ArtifactType = "wheel" },
		`-1 bytes`:                    func(p *Package) { p.Files[0].Size = -1 },
		`has no files`:                func(p *Package) { p.Files = nil },
		`257 files`:                   func(p *Package) { p.Files = make([]File, 257) },
		`1025 referrers`:              func(p *Package) { p.Referrers = make([]Referrer, 1025) },
		`the referrer "a/b"`:          func(p *Package) { p.Referrers[0].File.Name = "a/b" },
		`has more than 4194304 bytes`: func(p *Package) { p.Annotations["x"] = strings.Repeat("x", maxManifest) },
		`entry.json`:                  func(p *Package) { p.Files[1].Path += ".missing" },
		`the file changed since`:      func(p *Package) { p.Files[0].Path = filepath.Dir(p.Files[0].Path) },
	} {
		at, p := newPlace(t, true), sample(t, "a")
		change(&p)
		_, err := at.open(t).Push(t.Context(), p)
		check.That(t, err != nil && strings.Contains(err.Error(), want) && diag.CodeOf(err) == diag.Publish, "want %q, got %v", want, err)
		check.Same(t, want+": manifests stored", 0, at.count("PUT /v2/wheels/horovod/manifests/"))
	}
}

// Without the referrers API, publishers may overwrite each other's entries in the list
// of referrers. Each adds its own missing entries again.
func TestAReferrerThatWasOverwrittenComesBack(t *testing.T) {
	at := newPlace(t, false)
	p := sample(t, "a")
	bare := p
	bare.Referrers = nil
	digest := push(t, at.open(t), bare)
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
	found, err := at.open(t).Referrers(t.Context(), digest)
	check.That(t, err == nil && len(found) == 2 && lost.Load() >= 3, "%d referrers, %v, the list was written %d times", len(found), err, lost.Load())
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, tag) {
			w.WriteHeader(http.StatusCreated)
			return true
		}
		return false
	})
	p.Referrers = append(p.Referrers, Referrer{ArtifactType: proofType, File: file(t, "new.json", []byte("{}\n"))})
	_, err = at.open(t).Push(t.Context(), p)
	check.Fails(t, err, "does not list")
}

func TestASilentRegistry(t *testing.T) {
	at := newPlace(t, true)
	p := sample(t, "a")
	push(t, at.open(t), p)
	release := make(chan struct{})
	defer close(release)
	at.breaks(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == http.MethodGet { // a file that stops on the way
			_, _ = w.Write(make([]byte, 1<<20))
			_ = http.NewResponseController(w).Flush()
		}
		if req.Method != http.MethodHead {
			<-release
		}
		return req.Method != http.MethodHead
	})
	open := func(o Options) *Repository {
		return must.Get(OpenRepository("oci://"+at.addr+"/wheels/horovod", o))(t)
	}
	r := open(Options{silence: 100 * time.Millisecond, retry: retry.Policy{Tries: 2, First: 1, Most: 1}})
	_, err := r.Push(t.Context(), sample(t, "b"))
	check.That(t, diag.CodeOf(err) == diag.Publish && strings.Contains(err.Error(), "sent nothing for 100ms") && at.count("POST") == 2+5, "got %v after %d", err, at.count("POST"))
	err = r.Fetch(t.Context(), p.Files[0], t.TempDir())
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "sent nothing for 100ms"), "got %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = open(Options{}).Push(ctx, sample(t, "b"))
	check.That(t, diag.CodeOf(err) == diag.Interrupted, "interrupted: %v", err)
}

// The bytes of a manifest depend on the package alone: otherwise every package pushed
// again gets a new digest.
func TestTheBytesOfAManifest(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	f := File{Path: "/any/where", Name: "a.whl", MediaType: "application/zip", SHA256: sum, Size: 7}
	p := Package{
		ArtifactType: wheelType, Files: []File{f}, Annotations: map[string]string{"b": "2", "a": "1"},
		Referrers: []Referrer{{ArtifactType: proofType, File: f}},
	}
	const (
		empty = `{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2,"data":"e30="}`
		head  = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":`
		time  = `"org.opencontainers.image.created":"1970-01-01T00:00:00Z"`
	)
	layers := `,"layers":[{"mediaType":"application/zip","digest":"sha256:` + sum + `","size":7,"annotations":{"org.opencontainers.image.title":"a.whl"}}]`
	from := newUpload(nil)
	must.Succeed(t, from.pack(t.Context(), p))
	bytes, err := content.FetchAll(t.Context(), from, from.root)
	want := head + `"` + wheelType + `","config":` + empty + layers + `,"annotations":{"a":"1","b":"2",` + time + `}}`
	check.That(t, err == nil && string(bytes) == want, "%v\ngot  %s\nwant %s", err, bytes, want)
	subject := `,"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"` + from.root.Digest.String() + `","size":573}`
	about, err := content.FetchAll(t.Context(), from, from.referrers[0])
	want = head + `"` + proofType + `","config":` + empty + layers + subject + `,"annotations":{` + time + `}}`
	check.That(t, err == nil && string(about) == want, "%v\ngot  %s\nwant %s", err, about, want)
	m, err := read(bytes)
	f.Path = ""
	check.That(t, err == nil && slices.Equal(m.Files, []File{f}), "%+v, %v", m, err)
}
