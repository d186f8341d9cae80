package pipelines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"builder/internal/plan/lock"
)

func TestCcacheIsSharedByOneSourceInOneImage(t *testing.T) {
	var e lock.Entry
	e.Source.SHA256 = "1"
	e.Image.Env = map[string]string{"PATH": "/bin"}
	for _, c := range []struct {
		name   string
		change func(*lock.Entry)
		same   bool
	}{
		{"another script", func(e *lock.Entry) { e.Script = "make" }, true},
		{"another variable of the build", func(e *lock.Entry) { e.Env = map[string]string{"A": "b"} }, true},
		{"another source", func(e *lock.Entry) { e.Source.SHA256 = "2" }, false},
		{"another input", func(e *lock.Entry) { e.Inputs = []lock.Input{{Key: "1"}} }, false},
		{"another setup of the image", func(e *lock.Entry) { e.Image.Setup = "true" }, false},
		{"another variable of the image", func(e *lock.Entry) { e.Image.Env = map[string]string{"PATH": "/usr/bin"} }, false},
	} {
		other := e
		c.change(&other)
		if same := ccacheVolume(e) == ccacheVolume(other); same != c.same {
			t.Errorf("%s: the same cache is %v, want %v", c.name, same, c.same)
		}
	}
}

func TestASecondBuildTakesNothingFromTheCache(t *testing.T) {
	engine := &Engine{Ccache: "/ccache"}
	if !(&cell{Engine: engine, turn: firstTime}).usesCcache() {
		t.Error("the first build does not use the cache")
	}
	if (&cell{Engine: engine, turn: "again-1"}).usesCcache() {
		t.Error("the second build uses the cache")
	}
	if (&cell{Engine: &Engine{}, turn: firstTime}).usesCcache() {
		t.Error("the cache is used where nobody asked for it")
	}
}

// A build must find exactly the compiler names of the image.
func TestCcacheTakesTheNamesThatAreThere(t *testing.T) {
	at := newCcached(t)
	for _, name := range []string{"gcc", "g++-14", "x86_64-linux-gnu-g++", "c++", "gcc-ar", "gcc-ar-14", "clang++", "cpp", "g++.real"} {
		if err := os.WriteFile(filepath.Join(at.root, "bin", name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	status, out := at.build("ls " + at.root + "/tmp/builder-compilers\nprintf %s \"$PATH\"\n")
	want := "c++\ng++-14\ngcc\nx86_64-linux-gnu-g++\n" + at.root + "/tmp/builder-compilers:" + at.root + "/bin"
	if status != 0 || out != want {
		t.Errorf("exit %d: got %q, want %q", status, out, want)
	}
}

// Direct mode may use what an earlier build left only if no file can exist now that the
// preprocessor would have found first then.
func TestCcacheSelectsDirectLookupsByTheTree(t *testing.T) {
	at := newCcached(t)
	selection := func() string {
		t.Helper()
		status, out := at.build(`printf %s "$OBJC_INCLUDE_PATH"`)
		if status != 0 || !strings.HasPrefix(out, "/builder/") {
			t.Fatalf("exit %d: %q", status, out)
		}
		return out
	}
	at.write("src/a.cc", "1")
	at.write("src/a.h", "1")
	at.write("src/setup.py", "1")
	first := selection()
	for i, c := range []struct {
		name string
		same bool
	}{{"src/a.cc", true}, {"src/a.h", true}, {"src/setup.py", false}, {"src/b.h", false}, {"src/a.h.in", false}, {"src/a.cpp", false}, {"src/a.cpp", true}, {"src/a.cpp.in", false}, {"src/a.cpp.in", false}} {
		before := selection()
		at.write(c.name, fmt.Sprint(i))
		if same := selection() == before; same != c.same {
			t.Errorf("after a change of %s, the selection is the same: %v, want %v", c.name, same, c.same)
		}
	}
	if selection() == first {
		t.Error("another tree has the selection of the first one")
	}
	before := selection()
	at.script = "other"
	if selection() == before {
		t.Error("another script has the same selection")
	}
	before, at.a = selection(), "other"
	if selection() == before {
		t.Error("another variable has the same selection")
	}
}

func TestCcacheRefusesABuildThatMadeOtherFiles(t *testing.T) {
	at := newCcached(t)
	at.write("src/a.cc", "1")
	direct := `echo "direct: ${CCACHE_NODIRECT-yes}"` + "\n"
	for _, c := range []struct{ name, script, want string }{
		{"the first", direct + "touch ../src/made.h", "0 direct: yes"},
		{"the same files", direct + "touch made.h", "0 direct: yes"},
		{"other files", direct + "touch other.h", strconv.Itoa(ccacheStale) + " direct: yes"},
		{"after that", direct + "touch other.h", "0 direct: 1"},
	} {
		status, out := at.build(c.script)
		if got := fmt.Sprint(status, " ", strings.TrimSpace(out)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		for _, made := range []string{"made.h", "other.h"} {
			os.Remove(filepath.Join(at.root, "build/src", made))
		}
	}
}

// A first build that did not come to its end in the script left manifests, and nothing is
// known of its files.
func TestCcacheWithoutTheEndOfTheFirstBuild(t *testing.T) {
	at := newCcached(t)
	const direct = `echo "${CCACHE_NODIRECT-yes}"; `
	for _, c := range []struct{ name, script, want string }{
		{"fails", direct + "exit 3", "3 yes"},
		{"first after it", direct + "exec touch made.h", "0 yes"},
		{"next", direct, "0 1"},
	} {
		status, out := at.build(c.script)
		if got := fmt.Sprint(status, " ", strings.TrimSpace(out)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		os.Remove(filepath.Join(at.root, "build/src/made.h"))
	}
}

// A build that fails half way has made only some of its files, so nothing proves that
// its manifests (name*M) fit another build. Its objects (name*R) are good.
func TestCcacheKeepsNoManifestsOfAFailedBuild(t *testing.T) {
	at := newCcached(t)
	status, _ := at.build("mkdir -p $1/objects/0; : >$1/objects/0/oldM")
	if status != 0 {
		t.Fatal(status)
	}
	status, _ = at.build("sleep 0.02; : >$1/objects/0/newM; : >$1/objects/0/newR; exit 3")
	left, err := filepath.Glob(filepath.Join(at.root, "objects/0/*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if err != nil || status != 3 || strings.Join(left, " ") != "newR oldM" {
		t.Errorf("exit %d, left %v, %v; want exit 3, newR oldM", status, left, err)
	}
}

// ccached runs builds with [ccacheScript] in a directory in place of the container.
type ccached struct {
	t      *testing.T
	root   string
	script string // digest of the script
	a      string // variable A
}

func newCcached(t *testing.T) *ccached {
	root := t.TempDir()
	for _, dir := range []string{"bin", "tmp", "build/src", "objects"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "ccache"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"mkdir", "ls", "grep", "ln", "sh", "env", "find", "sort", "sha256sum", "cut", "mktemp", "mv", "rm", "cat", "touch", "sleep", "rmdir"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("this host has no %s", tool)
		}
		if err := os.Symlink(path, filepath.Join(root, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
	return &ccached{t: t, root: root}
}

func (at *ccached) write(name, text string) {
	at.t.Helper()
	if err := os.WriteFile(filepath.Join(at.root, "build", name), []byte(text), 0o644); err != nil {
		at.t.Fatal(err)
	}
}

// build runs the script of a recipe in src with the root directory as $1, and returns
// its exit status and output.
func (at *ccached) build(script string) (status int, output string) {
	at.t.Helper()
	if err := os.RemoveAll(filepath.Join(at.root, "tmp/builder-compilers")); err != nil { // each container is new
		at.t.Fatal(err)
	}
	all := strings.NewReplacer("/opt/builder", at.root, buildDir+" ", at.root+"/build ", "/tmp/", at.root+"/tmp/").Replace(ccacheScript)
	cmd := exec.Command("sh", "-euc", "builder_script="+at.script+"\n"+all+script, "sh", at.root)
	cmd.Dir = filepath.Join(at.root, "build/src")
	cmd.Env = []string{"PATH=" + at.root + "/bin", "A=" + at.a} // excludes the host's compilers
	out, err := cmd.CombinedOutput()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		at.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
