package pipelines

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A step can write objects of any text into its cache. So nothing that another recipe, or
// another state of the same recipe, puts there may be found.
func TestCcacheBelongsToOneEntry(t *testing.T) {
	e := lock.Entry{Recipe: "good", Script: "make", Env: map[string]string{"A": "a"}}
	e.Source.SHA256 = "1"
	e.Image.Env = map[string]string{"PATH": "/bin"}
	for name, change := range map[string]func(*lock.Entry){
		"another recipe":                func(e *lock.Entry) { e.Recipe = "evil" },
		"another script":                func(e *lock.Entry) { e.Script = "make all" },
		"another variable of the build": func(e *lock.Entry) { e.Env = map[string]string{"A": "b"} },
		"another patch":                 func(e *lock.Entry) { e.Patches = []patch.Patch{{Name: "fix"}} },
		"another source":                func(e *lock.Entry) { e.Source.SHA256 = "2" },
		"another input":                 func(e *lock.Entry) { e.Inputs = []lock.Input{{Key: "1"}} },
		"another setup of the image":    func(e *lock.Entry) { e.Image.Setup = "true" },
		"another variable of the image": func(e *lock.Entry) { e.Image.Env = map[string]string{"PATH": "/usr/bin"} },
	} {
		other := e
		change(&other)
		check.That(t, ccacheVolume(e) != ccacheVolume(other), "%s has the same cache", name)
	}
	same := e
	check.That(t, ccacheVolume(e) == ccacheVolume(same), "the next attempt has another cache")
}

func TestASecondBuildTakesNothingFromTheCache(t *testing.T) {
	check.That(t, usesCcache("/ccache", firstTime), "the first build does not use the cache")
	check.That(t, !usesCcache("/ccache", "again-1"), "the second build uses the cache")
	check.That(t, !usesCcache("", firstTime), "the cache is used where nobody asked for it")
}

// A build must find exactly the compiler names of the image.
func TestCcacheTakesTheNamesThatAreThere(t *testing.T) {
	at := newCcached(t)
	for _, name := range []string{"gcc", "g++-14", "x86_64-linux-gnu-g++", "c++", "gcc-ar", "gcc-ar-14", "clang++", "cpp", "g++.real"} {
		must.Succeed(t, os.WriteFile(filepath.Join(at.root, "bin", name), nil, 0o755))
	}
	status, out := at.build("ls " + at.root + "/tmp/builder-compilers\nprintf %s \"$PATH\"\n")
	want := "c++\ng++-14\ngcc\nx86_64-linux-gnu-g++\n" + at.root + "/tmp/builder-compilers:" + at.root + "/bin"
	check.That(t, status == 0 && out == want, "exit %d: got %q, want %q", status, out, want)
}

func TestCcacheHits(t *testing.T) {
	for said, want := range map[string]string{
		"cache_miss\t2\npreprocessed_cache_hit\t7\nrecache\t1\n": `{"hits":7,"misses":2}`,
		"preprocessed_cache_hit\t-7\ncache_miss\tmany\n":         `{"hits":0,"misses":0}`,
		"": `{"hits":0,"misses":0}`,
	} {
		check.Same(t, said, want, hits(said))
	}
}

// Objects of a failed build are reused, and only for the same preprocessed text: a header
// that the preprocessor finds before the one of the failed build gives another object.
// This is the pinned release's behaviour if the ccache of this host is that one.
func TestCcacheReusesOnlyTheSameText(t *testing.T) {
	at := newCcached(t)
	at.real()
	at.write("src/a.c", "#include <x.h>\nint f(void) { return X; }\n")
	for _, dir := range []string{"first", "second"} {
		must.Succeed(t, os.Mkdir(filepath.Join(at.root, "build/src", dir), 0o755))
	}
	at.write("src/second/x.h", "#define X 1\n")
	const compile = "gcc -O1 -Ifirst -Isecond -c a.c -o a.o\n"
	for _, c := range []struct {
		name, script string
		status       int
		hits         string
	}{
		{"fails", compile + "exit 3", 3, `{"hits":0,"misses":1}`},
		{"again", compile, 0, `{"hits":1,"misses":0}`},
		{"shadowed", "echo '#define X 2' >first/x.h\n" + compile, 0, `{"hits":0,"misses":1}`},
	} {
		status, out := at.build(c.script)
		must.Hold(t, status == c.status, "%s: exit %d: %s", c.name, status, out)
		check.Same(t, c.name, c.hits, hits(at.stats()))
		left := at.manifests()
		check.That(t, len(left) == 0, "%s: it left what direct lookups read: %v", c.name, left)
	}
}

// ccached runs builds with [ccacheScript] in a directory in place of the container.
type ccached struct {
	t    *testing.T
	root string
}

func newCcached(t *testing.T) *ccached {
	root := t.TempDir()
	for _, dir := range []string{"bin", "tmp", "build/src", "objects"} {
		must.Succeed(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(root, "ccache"), []byte("#!/bin/sh\n"), 0o755))
	at := &ccached{t: t, root: root}
	for _, tool := range []string{"mkdir", "ls", "grep", "ln", "sh"} {
		at.link(tool, "bin/"+tool)
	}
	return at
}

// link gives the builds a program of this host.
func (at *ccached) link(program, name string) {
	at.t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		at.t.Skipf("this host has no %s", program)
	}
	name = filepath.Join(at.root, name)
	must.Succeed(at.t, os.RemoveAll(name), os.Symlink(path, name))
}

// real gives the builds a compiler and the ccache of this host, with builder's settings.
func (at *ccached) real() {
	at.t.Helper()
	at.link("ccache", "ccache")
	for _, tool := range []string{"gcc", "as"} {
		at.link(tool, "bin/"+tool)
	}
	must.Succeed(at.t, os.WriteFile(filepath.Join(at.root, "ccache.conf"), []byte(at.moved(ccacheSettings)), 0o644))
}

// moved replaces the paths of a container by those of this test.
func (at *ccached) moved(text string) string {
	return strings.NewReplacer("/opt/builder", at.root, "/tmp/", at.root+"/tmp/").Replace(text)
}

func (at *ccached) write(name, text string) {
	at.t.Helper()
	must.Succeed(at.t, os.WriteFile(filepath.Join(at.root, "build", name), []byte(text), 0o644))
}

// build runs the script of a recipe in src with the root directory as $1, and returns
// its exit status and output.
func (at *ccached) build(script string) (status int, output string) {
	at.t.Helper()
	tmp := filepath.Join(at.root, "tmp")
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil { // each container is new
		at.t.Fatal(err)
	}
	return at.run("sh", "-euc", at.moved(ccacheScript)+script, "sh", at.root)
}

func (at *ccached) run(program string, args ...string) (status int, output string) {
	at.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = filepath.Join(at.root, "build/src")
	cmd.Env = []string{"PATH=" + at.root + "/bin", "CCACHE_CONFIGPATH=" + filepath.Join(at.root, "ccache.conf")} // excludes the host's compilers
	out, err := cmd.CombinedOutput()
	failed := new(exec.ExitError)
	must.Hold(at.t, err == nil || errors.As(err, &failed), "%v", err)
	return cmd.ProcessState.ExitCode(), string(out)
}

// stats returns the statistics of the last build.
func (at *ccached) stats() string {
	at.t.Helper()
	status, out := at.run(filepath.Join(at.root, "ccache"), "--print-log-stats")
	must.Hold(at.t, status == 0, "exit %d: %s", status, out)
	return out
}

// manifests returns the files of the cache that are not objects.
func (at *ccached) manifests() (left []string) {
	at.t.Helper()
	err := filepath.WalkDir(filepath.Join(at.root, "objects"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, out := at.run(filepath.Join(at.root, "ccache"), "--inspect", path); strings.Contains(out, "(manifest)") {
			left = append(left, path)
		}
		return nil
	})
	must.Succeed(at.t, err)
	return left
}
