package pipelines

import (
	"os"
	"os/exec"
	"path/filepath"
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
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gcc", "g++-14", "x86_64-linux-gnu-g++", "c++", "gcc-ar", "gcc-ar-14", "clang++", "cpp", "g++.real"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.NewReplacer("/opt/builder", root, "/tmp/builder-compilers", root+"/compilers").Replace(ccacheScript) + "trap - EXIT\nls " + root + "/compilers\nprintf %s \"$PATH\"\n"
	cmd := exec.Command("sh", "-euc", script)
	cmd.Env = []string{"PATH=" + bin} // excludes the host's compilers
	for _, tool := range []string{"mkdir", "ls", "grep", "ln", "sh"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("this host has no %s", tool)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	want := "c++\ng++-14\ngcc\nx86_64-linux-gnu-g++\n" + root + "/compilers:" + bin
	if err != nil || string(out) != want {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
}
