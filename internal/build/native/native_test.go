package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"builder/internal/base/diag"
	"builder/internal/machine/host"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func engine(t *testing.T, opts Options) *Engine {
	t.Helper()
	return New(t.TempDir(), t.Logf, opts)
}

func TestSupported(t *testing.T) {
	for name, c := range map[string]struct {
		goos string
		euid int
		want string
	}{
		"root":      {"linux", 0, ""},
		"user":      {"linux", 1000, "needs root"},
		"elsewhere": {"darwin", 0, "needs Linux"},
	} {
		err := supported(c.goos, c.euid)
		if c.want == "" {
			check.That(t, err == nil, "%s: %v", name, err)
			continue
		}
		wantNoEngine(t, err, c.want)
	}
}

func TestOneHomeHasOneName(t *testing.T) {
	home := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must.Succeed(t, os.Symlink(home, link))
	a, b := New(home, t.Logf, Options{}), New(link, t.Logf, Options{})
	check.That(t, a.dir == b.dir && a.process.socket == b.process.socket, "got %s and %s", a.dir, b.dir)
	check.That(t, New(home+"2", t.Logf, Options{}).process.socket != a.process.socket, "two homes share the socket %s", a.process.socket)
}

func TestBuildKey(t *testing.T) {
	key := buildKey()
	check.That(t, len(key) == 12 && key == buildKey(), "got %q", key)
	saved := buildFlags
	defer func() { buildFlags = saved }()
	before := buildKey()
	buildFlags = append(slices.Clone(buildFlags), "-race")
	check.That(t, buildKey() != before, "other flags must give another key")
	check.That(t, hash("ab", "c") != hash("a", "bc"), "parts run into each other")
}

// A program that cannot be executed is missing. A package that two programs lack is
// named once.
func TestNeeds(t *testing.T) {
	files := fstest.MapFS{"bin/git": {Mode: 0o755}, "bin/runc": {Mode: 0o644}}
	found, missing := host.Host{FS: files, Path: "/bin"}.Find(Needs)
	check.Same(t, "missing", []string{"runc", "mount"}, missing)
	check.Same(t, "found", map[string]string{"git": "/bin/git"}, found)
}

func TestLacking(t *testing.T) {
	wantNoEngine(t, lacking([]string{"runc", "git"}, true), "runc git")
	wantNoEngine(t, lacking([]string{"runc", "git"}, false), "runc git")
}

// The index is updated only if the installation fails without it.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	aptGet := filepath.Join(dir, "apt-get")
	script := `#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >>` + dir + `/calls
case "$*" in
*update*) touch ` + dir + `/index ;;
*broken*) echo "E: broken package"; exit 100 ;;
*) test -e ` + dir + `/index || { echo "E: Unable to locate package"; exit 100; } ;;
esac
`
	must.Succeed(t, os.WriteFile(aptGet, []byte(script), 0o755))
	for range 2 {
		must.Succeed(t, install(t.Context(), aptGet, []string{"runc"}, filepath.Join(dir, "install.log")))
	}
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	pre := "noninteractive -o DPkg::Lock::Timeout=300 "
	get := pre + "install -y --no-install-recommends runc\n"
	check.Same(t, "the calls", get+pre+"update\n"+get+get, string(calls))
	err := install(t.Context(), aptGet, []string{"broken"}, filepath.Join(dir, "install.log"))
	wantNoEngine(t, err, "exit status 100")
	var d *diag.Error
	if errors.As(err, &d); len(d.Log) == 0 || d.Log[0] != "E: broken package" || d.LogPath == "" {
		t.Errorf("the output is lost: %+v", d)
	}
}

func TestMakeMask(t *testing.T) {
	dir := t.TempDir()
	mask, left := filepath.Join(dir, "mask"), filepath.Join(dir, "state", "net", "cni", "left")
	must.Succeed(t, os.MkdirAll(left, 0o755))
	for range 2 { // the second time over existing files
		must.Succeed(t, makeMask(dir, "/build/init", "/usr/sbin/runc"))
	}
	check.That(t, !exists(left), "names of dead networks are left")
	for name, want := range map[string]string{"runc": "/usr/sbin/runc", "dagger-init": "/build/init"} {
		got, err := os.Readlink(filepath.Join(mask, "run/dagger/bin", name))
		check.That(t, err == nil && got == want, "%s: got %q, %v", name, got, err)
	}
	toml, err := os.ReadFile(filepath.Join(mask, "etc/dagger/engine.toml"))
	check.That(t, err == nil && string(toml) == config, "got %s, %v", toml, err)
}

func TestEngineEnv(t *testing.T) {
	env := engineEnv([]string{"HTTP_PROXY=http://p:1", "no_proxy=local", "SECRET=x", "HOME=/root", "SSL_CERT_FILE=/ca.pem", "FTP_PROXY=f"})
	got := strings.Join(env[1:], " ")
	want := "HOME=/run/dagger/tmp TMPDIR=/run/dagger/tmp DO_NOT_TRACK=1 GOGC=200 http_proxy=http://p:1 no_proxy=local SSL_CERT_FILE=/ca.pem"
	check.That(t, got == want, "got  %s\nwant %s", got, want)
}

func TestPidFile(t *testing.T) {
	e := engine(t, Options{})
	must.Succeed(t, os.MkdirAll(e.dir, 0o755))
	_, alive := e.process.pid()
	check.That(t, !alive, "no file, no engine")
	must.Succeed(t, os.WriteFile(filepath.Join(e.dir, "pid"), []byte("1\n"), 0o644)) // process 1 lives, but is not the supervisor
	_, alive = e.process.pid()
	check.That(t, !alive, "a file that nobody locks is a dead engine's")
}

// Other users can neither lock nor write the pid file, whatever the umask.
func TestPidFileIsPrivate(t *testing.T) {
	e := engine(t, Options{})
	defer syscall.Umask(syscall.Umask(0))
	must.Succeed(t, os.MkdirAll(e.dir, 0o755), launch(exec.Command("true"), e.dir))
	if info, err := os.Stat(filepath.Join(e.dir, "pid")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// An engine that ends without a fault during its start is an error too.
func TestEngineThatEndsAtOnce(t *testing.T) {
	exited := make(chan error, 1)
	exited <- nil
	err := ready(t.Context(), engine(t, Options{}).process.socket, exited)
	check.That(t, err != nil && err.Error() == "the engine ended during its start: exit status 0", "got %v", err)
}

// A directory in the place of the lock is named.
func TestLockThatIsADirectory(t *testing.T) {
	e := engine(t, Options{})
	must.Succeed(t, os.MkdirAll(filepath.Join(e.dir, "lock"), 0o755))
	_, err := e.lock(t.Context())
	wantNoEngine(t, err, filepath.Join(e.dir, "lock")+": is a directory")
}

func TestDownWithoutEngine(t *testing.T) {
	e := engine(t, Options{})
	err := e.Down(t.Context())
	check.That(t, err == nil, "%v", err)
	check.That(t, !exists(e.dir), "Down made a home")
	s := e.Look()
	check.That(t, !s.Running && !s.Built && s.Address == "", "got %+v", s)
}

func wantNoEngine(t *testing.T, err error, text string) {
	t.Helper()
	var d *diag.Error
	check.That(t, errors.As(err, &d) && d.Code == diag.NoEngine && d.Hint != "" && strings.Contains(err.Error(), text),
		"got %v, want an error of class no-engine with %q and a hint", err, text)
}

func TestRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	check.Same(t, "the record", (record{}), readRecord(file))
	must.Succeed(t, os.WriteFile(file, []byte("{"), 0o644))
	check.Same(t, "half a record is no record", (record{}), readRecord(file))
	must.Succeed(t, writeRecord(file, 0))
	check.That(t, readRecord(file).wanted(), "the engine just recorded is not wanted: %+v", readRecord(file))
}

func TestBound(t *testing.T) {
	for cache, want := range map[int64]string{
		0:    "",
		40e9: "--oci-worker-gc-keepstorage 2000,4000,20000",
	} {
		check.Same(t, fmt.Sprintf("bound of %d", cache), want, strings.Join(Bound(cache), " "))
	}
	e := New(t.TempDir(), t.Logf, Options{Cache: 40e9})
	args := e.process.command("engine").Args
	check.That(t, slices.Contains(args, "2000,4000,20000"), "the engine is started without its bound: %q", args)
}

func TestEmpty(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	err := e.Empty(t.Context())
	check.That(t, err == nil, "nothing there: %v", err)
	file := filepath.Join(e.dir, "state", "worker", "snapshot")
	must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, make([]byte, 100_000), 0o644), os.Link(file, file+"-again"))
	n, err := DiskUsage(t.Context(), filepath.Join(e.dir, "state"))
	check.That(t, err == nil && n >= 100_000 && n <= 150_000, "the cache has %d, %v", n, err)
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(filepath.Join(e.dir, "state")), "the cache is still there: %v", err)
	must.Succeed(t, os.MkdirAll(filepath.Join(e.dir, "state.old"), 0o755))
	err = e.Empty(t.Context())
	check.That(t, err == nil && !exists(filepath.Join(e.dir, "state.old")), "a cache that was half removed is still there: %v", err)
}
