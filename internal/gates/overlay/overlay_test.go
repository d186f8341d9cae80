package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/test/kit/check"
	"builder/test/kit/guesttest"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// newOverlay installs a wheel with a program and a module over the host's Python.
func newOverlay(t *testing.T, name string, limit time.Duration, hidden ...string) (*Overlay, error) {
	t.Helper()
	g := guesttest.Find(t, hidden...)
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-m", "pip", "--version").Run() != nil {
		t.Skip("needs python3 with pip")
	}
	w := wheeltest.Wheel{Name: name, Files: []wheeltest.File{
		{Name: "tiny/__init__.py", Text: "def main():\n    print('tiny at', __file__)\n"},
		{Name: strings.Join(strings.Split(name, "-")[:2], "-") + ".data/scripts/tinyrun", Text: "#!python\nimport os, sys, tiny\ntiny.main()\nprint(sys.argv[1:], open('task.json').read(), os.environ.get('MINE'), os.environ.get('OMPI_MCA_plm_rsh_agent'), os.environ.get('HOME'))\nsys.exit(3)\n", Mode: 0o755},
	}}
	path := must.File(t, name, w.Bytes())
	return New(t.Context(), Overlay{Python: python, Dir: t.TempDir(), Guest: g, Env: map[string]string{"MINE": "1"}, Timeout: limit}, path)
}

func TestProgramOfAWheel(t *testing.T) {
	t.Setenv("PYTHONPATH", "/somewhere/else")
	o := must.Get(newOverlay(t, "tiny-1-py3-none-any.whl", time.Minute))(t)
	out, err := o.Run(t.Context(), gate.Command{Args: []string{"tinyrun", "PYTHON"}, Files: map[string]string{"task.json": "{}"}})
	check.That(t, err == nil && out.Exit == 3 && strings.Contains(out.Output, "tiny at "+o.Dir) &&
		strings.Contains(out.Output, "['"+o.Python+"'] {} 1 /bin/true "+o.Dir), "%+v, %v", out, err)
	left, err := filepath.Glob(filepath.Join(o.Dir, "run-*"))
	check.That(t, err == nil && len(left) == 0, "%v are left, %v", left, err)
}

func TestWheelOfAnotherPython(t *testing.T) {
	_, err := newOverlay(t, "tiny-1-cp27-cp27m-linux_x86_64.whl", time.Minute)
	check.That(t, err != nil && strings.Contains(err.Error(), "installing tiny-1-cp27-cp27m-linux_x86_64.whl over ") &&
		strings.Contains(err.Error(), "not a supported wheel on this platform"), "got %v", err)
	_, err = New(t.Context(), Overlay{Python: "/no/such/python", Dir: t.TempDir()})
	check.That(t, diag.Worst(err) == diag.Usage, "got %v", err)
}

// A wheel reads neither the key and the home of the user nor the environment of the
// process that runs it, and leaves nothing for its next run.
func TestProgramIsAGuest(t *testing.T) {
	secret := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(secret, "key.pem"), []byte("PRIVATE KEY"), 0o644))
	t.Setenv("SIGNING_KEY", "secret-of-the-environment")
	o := must.Get(newOverlay(t, "tiny-1-py3-none-any.whl", time.Minute, secret))(t)
	steal := `cat "$1/key.pem" 2>&1
cat /proc/[0-9]*/environ | tr '\0' '\n' | grep secret-of
(echo faster > "$2/prefix/mine") 2>&1
ls "$HOME" /tmp; echo kept > "$HOME/kept"; echo kept > /tmp/kept`
	for range 2 {
		out, err := o.Run(t.Context(), gate.Command{Args: []string{"sh", "-c", steal, "sh", secret, o.Dir}})
		if err != nil || strings.Contains(out.Output, "PRIVATE KEY") || strings.Contains(out.Output, "secret-of") || strings.Contains(out.Output, "kept") ||
			!strings.Contains(out.Output, "Read-only file system") {
			t.Errorf("%+v, %v", out, err)
		}
	}
}

// A program that hangs ends with all of its children.
func TestProgramThatHangs(t *testing.T) {
	o, err := newOverlay(t, "tiny-1-py3-none-any.whl", time.Minute)
	must.Succeed(t, err)
	o.Timeout = 2 * time.Second
	start := time.Now()
	_, err = o.Run(t.Context(), gate.Command{Args: []string{"sh", "-c", "echo started; sleep 60 & wait"}})
	check.That(t, err != nil && strings.Contains(err.Error(), "it was killed after 2s; it last printed: started") &&
		time.Since(start) <= 20*time.Second, "after %v: %v", time.Since(start), err)
}
