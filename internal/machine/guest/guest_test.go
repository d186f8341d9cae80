package guest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/machine/guest"
	"builder/test/kit/check"
	"builder/test/kit/guesttest"
	"builder/test/kit/must"
)

// run runs a shell script as a guest and returns its output.
func run(t *testing.T, g guest.Guest, script string, p guest.Program) string {
	t.Helper()
	p.Path, p.Args = "/bin/sh", []string{"-c", script}
	if p.Dir == "" {
		p.Dir = "/"
	}
	cmd := must.Get(g.Command(t.Context(), p))(t)
	out, err := cmd.CombinedOutput()
	must.Hold(t, err == nil, "%v: %s", err, out)
	return string(out)
}

// secrets makes a home with a key, and a directory in it that a guest may read.
func secrets(t *testing.T) (home, shown string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home")
	shown = filepath.Join(home, "venv")
	must.Succeed(t, os.MkdirAll(shown, 0o755))
	for _, path := range []string{filepath.Join(home, "key.pem"), filepath.Join(shown, "module.py")} {
		must.Succeed(t, os.WriteFile(path, []byte("content of "+filepath.Base(path)+"\n"), 0o644))
	}
	return home, shown
}

func TestGuestSeesNoSecrets(t *testing.T) {
	home, shown := secrets(t)
	t.Setenv("SIGNING_KEY", "secret-of-the-environment")
	work := t.TempDir()
	g := guesttest.Find(t, home)
	out := run(t, g, `cat "$SECRET/key.pem" "$VENV/module.py" /etc/shadow 2>&1
cat /proc/[0-9]*/environ | tr '\0' '\n' | grep secret-of || echo no secret in any environment
ls /run
(echo write > "$VENV/module.py") 2>&1
echo interfaces: $(grep -c : /proc/net/dev)
echo write > "$WORK/file"`, guest.Program{
		Env:  []string{"SECRET=" + home, "VENV=" + shown, "WORK=" + work, "PATH=/usr/bin:/bin"},
		Read: []string{shown, filepath.Dir(home)}, Write: []string{work},
	})
	for _, want := range []string{"key.pem: No such file", "content of module.py", "/etc/shadow: No such file", "no secret in any environment", "Read-only file system", "interfaces: 1\n"} {
		check.That(t, strings.Contains(out, want), "%q is missing in %s", want, out)
	}
	text, err := os.ReadFile(filepath.Join(work, "file"))
	check.That(t, err == nil && string(text) == "write\n", "%q, %v", text, err)
}

func TestGuestOfASecretPlace(t *testing.T) {
	home, _ := secrets(t)
	g := guesttest.Find(t, home)
	alias := filepath.Join(t.TempDir(), "alias")
	must.Succeed(t, os.Symlink(home, alias))
	for _, place := range []string{home, alias, "/"} {
		_, err := g.Command(t.Context(), guest.Program{Path: "/bin/sh", Dir: "/", Read: []string{place}})
		check.That(t, err != nil, "a guest may read %s", place)
	}
	above := filepath.Join(t.TempDir(), "above")
	must.Succeed(t, os.Symlink(filepath.Dir(home), above))
	out := run(t, g, "cat "+above+"/home/key.pem 2>&1 || :", guest.Program{Env: []string{"PATH=/usr/bin:/bin"}, Read: []string{above}})
	check.That(t, !strings.Contains(out, "content of"), "got %s", out)
}

// The libraries of the program are not those of bubblewrap.
func TestGuestHasTheEnvironment(t *testing.T) {
	g := guesttest.Find(t)
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "libc.so.6"), []byte("no library"), 0o755))
	cmd, err := g.Command(t.Context(), guest.Program{Path: "/bin/sh", Args: []string{"-c", ":"}, Dir: dir, Read: []string{dir}, Env: []string{"LD_LIBRARY_PATH=" + dir}})
	must.Succeed(t, err)
	if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "bwrap: ") || !strings.Contains(string(out), "/bin/sh: ") {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestGuestEnds(t *testing.T) {
	g := guesttest.Find(t)
	for script, want := range map[string]guest.End{
		"kill -SEGV $$": {Exit: 128 + int(syscall.SIGSEGV), Signal: syscall.SIGSEGV}, "exit 255": {Exit: 255}, "exit 1": {Exit: 1}, "exit 0": {},
	} {
		out := &guest.Output{Max: 100}
		end, err := g.Run(t.Context(), guest.Program{Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Env: []string{"PATH=/bin"}}, out, out)
		check.That(t, err == nil && end == want, "%s: %+v, %v", script, end, err)
	}
}

// Without bubblewrap root uses another user, and nobody else runs the artifact at all.
func TestGuestWithoutNamespaces(t *testing.T) {
	g, err := guest.Find(t.Context(), "", errors.New("it was not fetched"))
	if os.Geteuid() != 0 {
		check.That(t, diag.Worst(err) == diag.Usage && strings.Contains(err.Error(), "it was not fetched"), "got %v", err)
		return
	}
	must.Hold(t, err == nil && strings.Contains(g.Weaker(), "nobody"), "got %q, %v", g.Weaker(), err)
	home, _ := secrets(t)
	must.Succeed(t, os.Chmod(filepath.Join(home, "key.pem"), 0o600))
	t.Setenv("SIGNING_KEY", "secret-of-the-environment")
	out := run(t, g, `id -u; cat "$HOME/key.pem" /proc/$PPID/environ 2>&1 || :`, guest.Program{Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}})
	check.That(t, strings.HasPrefix(out, "65534\n") && !strings.Contains(out, "content of") && !strings.Contains(out, "secret-of"),
		"got %s", out)
	closed := filepath.Join(t.TempDir(), "closed")
	must.Succeed(t, os.Mkdir(closed, 0o700))
	_, err = g.Command(t.Context(), guest.Program{Path: "/bin/sh", Dir: "/", Read: []string{filepath.Join(closed, "file")}})
	check.That(t, diag.Worst(err) == diag.Usage, "got %v", err)
}

func TestNoGuest(t *testing.T) {
	_, err := (guest.Guest{}).Command(context.Background(), guest.Program{Path: "/bin/sh", Dir: "/"})
	check.That(t, err != nil, "the zero Guest runs a program")
}
