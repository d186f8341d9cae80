package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// hasty runs the program with short waits between retries.
func hasty() {
	retry.Default.First, retry.Default.Most = 40*time.Millisecond, 200*time.Millisecond
	main()
}

// largest is the maximum file size of the cramped program in bytes. A wheel of the
// scenes is larger.
const largest = 1 << 19

// cramped runs the program with a limit on the file size. It behaves like a full disk
// and needs no right to mount.
func cramped() {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: largest, Max: largest}); err != nil {
		panic(err)
	}
	hasty()
}

// password must reach no server but the destination and must not be printed.
const password = "Geheim4711Geheim"

// secrets returns the forms of the password in requests.
func secrets() []string {
	all := []string{password}
	for _, user := range []string{"__token__", "builder"} {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	return all
}

// A workshop holds the files of all scenes: the program, and two results of one cell
// with the same name and different bytes.
type workshop struct {
	home, site  string
	cell, other string // directories in the layout of a run
}

// newWorkshop makes the results from the site of publish.txtar.
func newWorkshop(t *testing.T) workshop {
	t.Helper()
	dir := t.TempDir()
	script, err := txtar.ParseFile(filepath.Join("testdata", "script", "publish.txtar"))
	must.Succeed(t, err)
	must.Succeed(t, txtar.Write(script, dir))
	w := workshop{home: filepath.Join(dir, "home"), site: filepath.Join(dir, "site")}
	must.Succeed(t, sealLock(filepath.Join(w.site, "recipes", "tiny.lock.json")))
	w.cell = w.run(t, filepath.Join(dir, "first"))
	w.other = w.run(t, filepath.Join(dir, "second"))
	return w
}

// run writes a result. Its wheel is large enough for an interruption during the upload.
func (w workshop) run(t *testing.T, out string) string {
	t.Helper()
	noise := make([]byte, 3*largest)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(filepath.Base(out)))).Read(noise)
	must.Succeed(t, sealCells(w.site, w.home, []string{"tiny"}, wheeltest.File{Name: "tiny/noise", Text: string(noise)}))
	s := w.scene(t)
	got := s.builder("run", "tiny", "--out", out)
	must.Hold(t, got.exit == diag.OK, "exit code %d\n%s", got.exit, got.stderr)
	return filepath.Join(out, "tiny-1.0")
}

// A scene is a host with a wheel to publish and a destination, one of which has a
// fault.
type scene struct {
	*testing.T
	made    workshop
	dir     string            // the scene's own, initially empty
	program string            // name of a variant of builder
	env     map[string]string // of the program
	flags   []string          // of publish
	to      string            // the destination
	cell    string            // the directory to publish
	other   string            // a directory to publish at the same time, or ""
	look    func() remains    // inspects the destination without builder

	front   *front // set if the destination is a server
	mends   []func()
	process atomic.Pointer[os.Process]
}

// scene returns a scene without a fault and without a destination.
func (w workshop) scene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	return &scene{
		T: t, made: w, dir: dir, program: "hasty", cell: w.cell,
		env: map[string]string{
			"PATH": "", "HOME": "/no-home", "TMPDIR": t.TempDir(),
			"BUILDER_HOME": w.home, "BUILDER_RECIPES": w.site, "BUILDER_NO_INSTALL": "1",
			"BUILDER_ENGINE": "unix://" + filepath.Join(dir, "no-engine"), "BUILDER_MIRROR_DEBIAN": "http://127.0.0.1:1",
			"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1",
			"GOGC":             "off", // a short process needs no garbage collection
			"UV_PUBLISH_TOKEN": password, "DOCKER_CONFIG": filepath.Join(dir, "docker"),
		},
	}
}

// whenMended registers a function that repairs the fault.
func (s *scene) whenMended(f func()) { s.mends = append(s.mends, f) }

func (s *scene) mend() {
	for _, f := range s.mends {
		f()
	}
	s.mends = nil
}

// wheel returns the path of the file to publish.
func (s *scene) wheel() string { return filepath.Join(s.cell, "tiny-1.0-py3-none-any.whl") }

func (s *scene) check(err error) {
	s.Helper()
	must.Succeed(s, err)
}

// An outcome is the exit code and output of a process.
type outcome struct {
	exit           diag.Code
	stdout, stderr string
}

// patience limits the time of a process, so that a hanging one fails with its output.
const patience = time.Minute

func (s *scene) publish(cell string) outcome {
	return s.builder(append([]string{"publish", cell, "--to", s.to}, s.flags...)...)
}

// builder runs the program to its end.
func (s *scene) builder(args ...string) outcome {
	path, err := exec.LookPath(s.program)
	if err != nil {
		s.Error(err)
		return outcome{exit: diag.Unexpected}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &stdout, &stderr
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Start(); err != nil {
		s.Error(err)
		return outcome{exit: diag.Unexpected}
	}
	s.process.Store(cmd.Process)
	err = cmd.Wait()
	check.That(s, ctx.Err() == nil, "it hangs: %v", err)
	return outcome{diag.Code(cmd.ProcessState.ExitCode()), stdout.String(), stderr.String()}
}

// signal sends a signal to the running program.
func (s *scene) signal(sig syscall.Signal) {
	err := s.process.Load().Signal(sig)
	check.That(s, err == nil, "%v", err)
}

// sums returns the digests of the two wheels to publish.
func (s *scene) sums() map[string]bool {
	all := map[string]bool{}
	for _, dir := range []string{s.cell, s.other} {
		if dir != "" {
			all[s.sumOf(filepath.Join(dir, filepath.Base(s.wheel())))] = true
		}
	}
	return all
}

func (s *scene) sumOf(path string) string {
	data, err := os.ReadFile(path)
	check.That(s, err == nil, "%v", err)
	return sumOf(data)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// when calls f at each event on a path, or in it on a name that matches, until f
// returns false.
func (s *scene) when(path string, event uint32, name *regexp.Regexp, f func() (more bool)) {
	s.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	s.check(err)
	watch := os.NewFile(uintptr(fd), "inotify")
	s.Cleanup(func() { _ = watch.Close() })
	_, err = syscall.InotifyAddWatch(fd, path, event)
	s.check(err)
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, err := watch.Read(buffer)
			if err != nil || name.Match(buffer[:n]) && !f() {
				return
			}
		}
	}()
}
