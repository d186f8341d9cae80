package lock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// registry serves one image index. It returns a reference to it and the digest of the
// linux/amd64 image.
func registry(t *testing.T) (reference, digest string) {
	t.Helper()
	const kind = "application/vnd.oci.image.index.v1+json"
	digest = "sha256:" + sha("c0ffee")
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":7,"platform":{"os":"linux","architecture":"amd64"}}]}`, kind, digest)
	sum := sha256.Sum256([]byte(index))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v2/base/manifests/") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Docker-Content-Digest", "sha256:"+hex.EncodeToString(sum[:]))
		w.Header().Set("Content-Length", fmt.Sprint(len(index)))
		if r.Method != http.MethodHead {
			fmt.Fprint(w, index)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/base:1", digest
}

func resolver(uv error) lock.Resolver {
	return lock.Resolver{
		Mirrors: func() []string { return nil },
		UV:      func(context.Context) (pypi.Tool, error) { return pypi.Tool{}, uv },
		Now:     func() time.Time { return time.Unix(1700000000, 0) },
	}
}

func TestResolveAnImage(t *testing.T) {
	reference, digest := registry(t)
	missing := lock.Missing{Images: []image.Image{{Name: "base", Registry: reference}}}
	got, err := resolver(errors.New("uv is not asked")).Resolve(t.Context(), "tiny", missing)
	want := lock.File{Schema: lock.Schema, Recipe: "tiny", Images: []lock.ImagePin{{Name: "base", Registry: reference, Digest: digest}}}
	diff := cmp.Diff(want, got)
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
}

// A fake apt-get answers every request with one package.
func TestResolveADebian(t *testing.T) {
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(keyring); err != nil {
		t.Skip("needs the Debian archive keyring")
	}
	dir := t.TempDir()
	program := "#!/bin/sh\ncp \"$(dirname \"$APT_CONFIG\")/etc/sources.list\" '" + dir + "/sources'\n" +
		"echo \"'http://mirror.example/debian/pool/main/a/apt/apt_3.0_amd64.deb' apt_3.0_amd64.deb 3 SHA256:" + sha("b0") + "\"\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "apt-get"), []byte(program), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	r := resolver(errors.New("uv is not asked"))
	r.Scratch = t.TempDir()
	r.Mirrors = func() []string { return []string{"http://mirror.example/debian", "http://other.example/debian"} }
	img := tinyImages()[0]
	got, err := r.Resolve(t.Context(), "tiny", lock.Missing{Images: []image.Image{img}})
	want := tinyLock().Images[:1]
	want[0].Packages = want[0].Packages[:1]
	diff := cmp.Diff(want, got.Images)
	check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
	sources, _ := os.ReadFile(filepath.Join(dir, "sources"))
	if want := "deb [arch=amd64 signed-by=" + keyring + "] http://mirror.example/debian/ trixie main\n"; string(sources) != want {
		t.Errorf("apt was given %q, want %q", sources, want)
	}
	text := got.Encode()
	check.That(t, !strings.Contains(string(text), "mirror.example"), "the lock names the mirror:\n%s", text)
}

func TestResolveReports(t *testing.T) {
	reference, _ := registry(t)
	noUV := diag.Errorf(diag.Fetch, "there is no uv")
	for name, c := range map[string]struct {
		missing lock.Missing
		code    diag.Code
		want    string
	}{
		"unknown image": {
			lock.Missing{Images: []image.Image{{Name: "base", Registry: strings.Replace(reference, "/base", "/other", 1)}}},
			diag.Fetch, "locking image base: resolving image ",
		},
		"no reference": {lock.Missing{Images: []image.Image{{Name: "base", Registry: "a b"}}}, diag.Usage, "locking image base: resolving image "},
		"no mirror":    {lock.Missing{Images: tinyImages()[:1]}, diag.Fetch, "locking image debian: no Debian mirror: the host"},
		"no uv":        {lock.Missing{Python: []lock.PythonPin{{Python: "3.11", Requirements: []string{"numpy"}}}}, diag.Fetch, "there is no uv"},
		"no uv for a source": {
			lock.Missing{Sources: []lock.SourceNeed{{Origin: recipe.Origin{Kind: recipe.Sdist}, Project: "tiny", Version: "1.0"}}}, diag.Fetch, "there is no uv",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolver(noUV).Resolve(t.Context(), "tiny", c.missing)
			check.That(t, cmp.Diff(lock.File{}, got) == "" && diag.CodeOf(err) == c.code && strings.Contains(err.Error(), c.want),
				"got %+v, class %v: %v", got, diag.CodeOf(err), err)
		})
	}
}

// Names that cannot be resolved do not prevent the others from being pinned. All errors
// are reported. Without requirements the index is not used.
func TestResolveTheRest(t *testing.T) {
	reference, digest := registry(t)
	missing := lock.Missing{
		Images: []image.Image{
			{Name: "gone", Registry: strings.Replace(reference, "/base", "/gone", 1)},
			{Name: "base", Registry: reference},
			{Name: "lost", Registry: strings.Replace(reference, "/base", "/lost", 1)},
		},
		Python: []lock.PythonPin{{Python: "3.11"}, {Python: "3.12", Requirements: []string{"numpy"}}},
	}
	got, err := resolver(diag.Errorf(diag.Fetch, "there is no uv")).Resolve(t.Context(), "tiny", missing)
	check.That(t, len(got.Images) == 1 && got.Images[0].Digest == digest && len(got.Python) == 1 && got.Python[0].Python == "3.11",
		"got %+v", got)
	all := diag.All(err)
	must.Hold(t, len(all) == 3 && diag.CodeOf(err) == diag.Fetch, "%d faults, class %v: %v", len(all), diag.CodeOf(err), err)
	for i, says := range []string{"locking image gone: ", "locking image lost: ", "locking Python packages: there is no uv"} {
		check.That(t, strings.HasPrefix(all[i].Error(), says), "fault %d is %v", i, all[i])
	}
}

// No further request is made after the end of the context.
func TestResolveEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	r := lock.Resolver{UV: func(ctx context.Context) (pypi.Tool, error) {
		asked++
		cancel()
		return pypi.Tool{}, ctx.Err()
	}}
	_, err := r.Resolve(ctx, "tiny", lock.Missing{Python: []lock.PythonPin{{Python: "3.11", Requirements: []string{"a"}}, {Python: "3.12", Requirements: []string{"b"}}}})
	check.That(t, asked == 1 && errors.Is(err, context.Canceled), "asked %d times: %v", asked, err)
}

// Arguments of uv are checked before uv runs.
func TestResolveRefusesAHostileQuestion(t *testing.T) {
	missing := lock.Missing{Sources: []lock.SourceNeed{{Origin: recipe.Origin{Kind: recipe.Sdist}, Project: "--index-url=x", Version: "1"}}}
	_, err := resolver(nil).Resolve(t.Context(), "tiny", missing)
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), "locking source --index-url=x 1: "),
		"class %v: %v", diag.CodeOf(err), err)
	missing = lock.Missing{Python: []lock.PythonPin{{Python: "three", Requirements: []string{"x"}}}}
	if _, err := resolver(nil).Resolve(t.Context(), "tiny", missing); diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), "locking Python packages: ") {
		t.Errorf("class %v: %v", diag.CodeOf(err), err)
	}
}

// A recipe may state the commit of a tag, because tags can be moved and a lock may not
// have every tag.
func TestResolveATagAndItsCommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "git %v: %v: %s", args, err, out)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n"), 0o600))
	git("add", "Makefile")
	git("commit", "-q", "-m", "one")
	git("tag", "v1")
	first := git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "two")
	second := git("rev-parse", "HEAD")
	resolve := func(commit string) (lock.File, error) {
		r := resolver(errors.New("uv is not asked"))
		r.Scratch = t.TempDir()
		r.Overrides = map[string][]string{"tool": {dir}}
		from := recipe.Origin{Kind: recipe.Git, Repository: "https://example.com/tool", Tag: "v1", Commit: commit}
		return r.Resolve(t.Context(), "tool", lock.Missing{Sources: []lock.SourceNeed{{Origin: from, Project: "tool", Version: "1"}}})
	}
	f, err := resolve(first)
	check.That(t, err == nil && len(f.Sources) == 1 && f.Sources[0].Commit == first && f.Sources[0].Tag == "v1", "%+v, %v", f.Sources, err)
	_, err = resolve(second)
	check.That(t, diag.CodeOf(err) == diag.Drift && strings.Contains(err.Error(), "the tag v1 of tool names commit "+first+", but the recipe has "+second),
		"a tag that leads elsewhere: %v", err)
}
