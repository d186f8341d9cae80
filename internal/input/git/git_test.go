package git

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// repository makes a repository with these files at tag v1. A name with a final @ is a
// link, and a name with a final * is a program.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for name, text := range files {
		path := filepath.Join(dir, strings.TrimRight(name, "@*"))
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
		var err error
		switch {
		case strings.HasSuffix(name, "@"):
			err = os.Symlink(text, path)
		case strings.HasSuffix(name, "*"):
			err = os.WriteFile(path, []byte(text), 0o755)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		must.Succeed(t, err)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "tag", "-a", "-m", "release", "v1")
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example", "-c", "protocol.file.allow=always", "-C", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	must.Hold(t, err == nil, "git %v: %v\n%s", args, err, out)
}

// archive makes the archive of v1 in a new clone and returns its tar.
func archive(t *testing.T, repo string) []byte {
	t.Helper()
	sha := must.Get(Resolve(t.Context(), Repository(repo), "v1"))(t)
	file := filepath.Join(t.TempDir(), "a.tar")
	must.Get(Make(t.Context(), t.TempDir(), Repository(repo), Tree{Commit: sha, Folder: "src"}, file))(t)
	return must.Get(os.ReadFile(file))(t)
}

func entries(t *testing.T, data []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		must.Succeed(t, err)
		text := must.Get(io.ReadAll(r))(t)
		got[h.Name] = h.FileInfo().Mode().String() + " " + h.Linkname + string(text)
	}
}

func TestArchive(t *testing.T) {
	repo := repository(t, map[string]string{"Makefile": "all:\n", "tools/run*": "#!/bin/sh\n", "latest@": "Makefile", "empty": ""})
	want := map[string]string{
		"src/Makefile": "-rw-r--r-- all:\n", "src/empty": "-rw-r--r-- ",
		"src/latest": "Lrwxrwxrwx Makefile", "src/tools/run": "-rwxr-xr-x #!/bin/sh\n",
	}
	check.Same(t, "values", want, entries(t, archive(t, repo)))
}

func TestArchiveFollowsFromTheCommitAlone(t *testing.T) {
	repo := repository(t, map[string]string{"a": "1", "b/c": "2"})
	first := sha256.Sum256(archive(t, repo))
	os.WriteFile(filepath.Join(repo, "untracked"), []byte("x"), 0o644)
	git(t, repo, "config", "core.autocrlf", "true")
	bare := filepath.Join(t.TempDir(), "bare")
	git(t, repo, "clone", "-q", "--bare", repo, bare)
	second := sha256.Sum256(archive(t, bare))
	check.That(t, first == second, "two clones of one commit give different archives")
}

func TestArchiveHoldsSubmodules(t *testing.T) {
	inner := repository(t, map[string]string{"gloo.h": "int x;\n"})
	outer := repository(t, map[string]string{"Makefile": "all:\n"})
	git(t, outer, "submodule", "add", "-q", inner, "third_party/gloo")
	git(t, outer, "commit", "-q", "-m", "with a submodule")
	git(t, outer, "tag", "-f", "-a", "-m", "release", "v1")
	got := entries(t, archive(t, outer))
	check.That(t, got["src/third_party/gloo/gloo.h"] == "-rw-r--r-- int x;\n", "got %v", got)
}

func TestResolveFaults(t *testing.T) {
	repo := repository(t, map[string]string{"a": "1"})
	for _, c := range []struct {
		repo, tag, want string
		code            diag.Code
	}{
		{repo, "v2", "has no tag v2", diag.Fetch},
		{repo, "--upload-pack=touch /tmp/x", "is not the name of a tag", diag.Usage},
		{"ext::sh -c id", "v1", "is not the address of a repository", diag.Usage},
		{"--help", "v1", "is not the address of a repository", diag.Usage},
		{filepath.Join(repo, "absent"), "v1", "does not appear to be a git repository", diag.Fetch},
	} {
		_, err := Resolve(t.Context(), Repository(c.repo), c.tag)
		check.That(t, err != nil && strings.Contains(err.Error(), c.want) && diag.CodeOf(err) == c.code,
			"%s %s: got %v", c.repo, c.tag, err)
	}
}

// The configuration of a repository around the working directory names no program of ours.
func TestResolveIgnoresTheCheckout(t *testing.T) {
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "mark")
	for _, args := range [][]string{{"init", "--quiet"}, {"config", "core.sshCommand", "touch " + mark + "; false"}} {
		must.Succeed(t, exec.Command("git", append([]string{"-C", dir}, args...)...).Run())
	}
	t.Chdir(dir)
	_, err := Resolve(t.Context(), "ssh://localhost:1/a.git", "v1")
	_, planted := os.Stat(mark)
	check.That(t, err != nil && planted != nil, "%v; the checkout's program ran: %v", err, planted == nil)
}

func TestMakeRefuses(t *testing.T) {
	repo := repository(t, map[string]string{"a": "1"})
	for sha, code := range map[string]diag.Code{strings.Repeat("0", 40): diag.Fetch, "v1": diag.Usage, "": diag.Usage} {
		_, err := Make(t.Context(), t.TempDir(), Repository(repo), Tree{Commit: sha, Folder: "src"}, filepath.Join(t.TempDir(), "a.tar"))
		check.That(t, err != nil && diag.CodeOf(err) == code, "%q: got %v", sha, err)
	}
}

func TestSubmodulePlaces(t *testing.T) {
	for _, c := range []struct{ from, address, want string }{
		{"https://host.example/org/repo.git", "../gloo.git", "https://host.example/org/gloo.git"},
		{"https://host.example/org/repo.git", "https://other.example/gloo.git", "https://other.example/gloo.git"},
		{"https://host.example/org/repo.git", "/srv/gloo", "/srv/gloo"},
		{"/srv/repo", "../gloo", "../gloo"},
	} {
		check.Same(t, fmt.Sprintf("%s %s", c.from, c.address), c.want, string(submodule(Repository(c.from), "gloo", "third_party/gloo", c.address)))
	}
}

// A source must not choose another repository of this host as its submodule.
func TestASubmoduleIsNoOtherRepositoryOfThisHost(t *testing.T) {
	private := repository(t, map[string]string{"password": "secret\n"})
	bare := filepath.Join(t.TempDir(), "bare") // has no copy of the submodule
	relative := must.Get(filepath.Rel(bare, private))(t)
	for name, address := range map[string]string{"absolute": private, "relative": relative} {
		outer := repository(t, map[string]string{"Makefile": "all:\n"})
		git(t, outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", private, "gloo")
		git(t, outer, "config", "--file", ".gitmodules", "submodule.gloo.url", address)
		git(t, outer, "commit", "-q", "-a", "-m", "with a submodule")
		must.Succeed(t, os.RemoveAll(bare))
		git(t, outer, "clone", "-q", "--bare", outer, bare)
		sha := revision(t, bare)
		_, err := Make(t.Context(), t.TempDir(), Repository(bare), Tree{Commit: sha, Folder: "src"}, filepath.Join(t.TempDir(), "a.tar"))
		check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "submodule gloo: ") && strings.Contains(err.Error(), "is not the address of a repository"),
			"%s: %v", name, err)
	}
}

func revision(t *testing.T, dir string) string {
	t.Helper()
	out := must.Get(exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output())(t)
	return strings.TrimSpace(string(out))
}

// Only the user may name a repository of this host.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		address string
		places  []string
		want    Repository
		code    diag.Code
	}{
		{"https://host.example/repo", nil, "https://host.example/repo", diag.OK},
		{"ssh://git@host.example/repo", nil, "ssh://git@host.example/repo", diag.OK},
		{"https://host.example/repo", []string{"/srv/repo", "/srv/other"}, "/srv/repo", diag.OK},
		{"/srv/repo", nil, "", diag.Usage},
		{"file:///srv/repo", nil, "", diag.Usage},
		{"../repo", nil, "", diag.Usage},
	} {
		got, err := Source(c.address, c.places)
		check.That(t, diag.CodeOf(err) == c.code && (err != nil || got == c.want), "%s %v: %s, %v", c.address, c.places, got, err)
	}
}

// The archive of a folder leaves out submodules and other folders.
func TestArchiveOfAFolder(t *testing.T) {
	inner := repository(t, map[string]string{"gloo.h": "int x;\n"})
	repo := repository(t, map[string]string{"Makefile": "all:\n", "test/a.py": "1", "test/deep/b.py": "2", "tester/c.py": "3"})
	git(t, repo, "submodule", "add", "-q", inner, "test/gloo")
	git(t, repo, "commit", "-q", "-m", "with a submodule")
	git(t, repo, "tag", "-f", "-a", "-m", "release", "v1")
	sha := must.Get(Resolve(t.Context(), Repository(repo), "v1"))(t)
	file := filepath.Join(t.TempDir(), "a.tar")
	for root, want := range map[bool]map[string]string{
		false: {"src/test/a.py": "-rw-r--r-- 1", "src/test/deep/b.py": "-rw-r--r-- 2"},
		true:  {"src/a.py": "-rw-r--r-- 1", "src/deep/b.py": "-rw-r--r-- 2"},
	} {
		_, err := Make(t.Context(), t.TempDir(), Repository(repo), Tree{Commit: sha, Under: "test", Folder: "src", Root: root}, file)
		must.Succeed(t, err)
		data := must.Get(os.ReadFile(file))(t)
		check.Same(t, "values", want, entries(t, data))
	}
	for under, code := range map[string]diag.Code{"tests": diag.Fetch, "../test": diag.Usage, "/etc": diag.Usage, "Makefile": diag.Fetch, "*": diag.Fetch} {
		_, err := Make(t.Context(), t.TempDir(), Repository(repo), Tree{Commit: sha, Under: under, Folder: "src"}, file)
		check.That(t, diag.CodeOf(err) == code, "%q: %v", under, err)
	}
}

// A server may send more tags than fit into memory.
func TestAnswersAreBounded(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nexec head -c 100000000 /dev/zero\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_, err := Resolve(t.Context(), "https://a.example/b", "v1")
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "reaching https://a.example/b: git: "), "%v", err)
	out, err := run(t.Context(), "", "ls-remote")
	check.That(t, err != nil && len(out) == 0, "%d bytes, %v", len(out), err)
}
