package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"builder/internal/base/diag"
	"builder/internal/base/retry"
	"builder/internal/files/wheel/wheeltest"
	"builder/internal/plan/lock"
)

// hasty is the program with short waits between its tries.
func hasty() {
	retry.Default.First, retry.Default.Most = 40*time.Millisecond, 200*time.Millisecond
	main()
}

// largest is how many bytes a file of the cramped program may have. A wheel of the
// scenes has more.
const largest = 1 << 19

// cramped is the program where no file can become large: as a full disk, and for
// users who may not mount one.
func cramped() {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: largest, Max: largest}); err != nil {
		panic(err)
	}
	hasty()
}

// password is what no server but the destination may see, and nobody print.
const password = "Geheim4711Geheim"

// secrets are the forms in which a password travels.
func secrets() []string {
	all := []string{password}
	for _, user := range []string{"__token__", "builder"} {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	return all
}

// A workshop has what scenes are made of: the program, and two results of one cell
// under one name whose bytes differ.
type workshop struct {
	home, site  string
	cell, other string // directories as a run leaves them
}

// newWorkshop makes the results of the site of publish.txtar.
func newWorkshop(t *testing.T) workshop {
	t.Helper()
	dir := t.TempDir()
	script, err := txtar.ParseFile(filepath.Join("testdata", "script", "publish.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if err := txtar.Write(script, dir); err != nil {
		t.Fatal(err)
	}
	w := workshop{home: filepath.Join(dir, "home"), site: filepath.Join(dir, "site")}
	sealLock(t, filepath.Join(w.site, "recipes", "tiny.lock.json"))
	w.cell = w.run(t, filepath.Join(dir, "first"))
	w.other = w.run(t, filepath.Join(dir, "second"))
	return w
}

func sealLock(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	var f lock.File
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil {
		err = os.WriteFile(path, f.Encode(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run lays a result out, whose wheel is large enough to be interrupted.
func (w workshop) run(t *testing.T, out string) string {
	t.Helper()
	noise := make([]byte, 3*largest)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(filepath.Base(out)))).Read(noise)
	if err := sealCells(w.site, w.home, []string{"tiny"}, wheeltest.File{Name: "tiny/noise", Text: string(noise)}); err != nil {
		t.Fatal(err)
	}
	s := w.scene(t)
	if got := s.builder("run", "tiny", "--out", out); got.exit != diag.OK {
		t.Fatalf("exit code %d\n%s", got.exit, got.stderr)
	}
	return filepath.Join(out, "tiny-1.0")
}

// A scene is a host with something to publish, a destination, and what is wrong
// with one of them.
type scene struct {
	*testing.T
	made    workshop
	dir     string            // is the scene's alone, and empty
	program string            // builder, in one of its forms
	env     map[string]string // of the program
	flags   []string          // of publish
	to      string            // the destination
	cell    string            // the directory that is published
	rival   string            // one that is published at the same time, or ""
	look    func() remains    // at the destination, without the tool

	front   *front // of a destination that is a server
	mends   []func()
	process atomic.Pointer[os.Process]
}

// scene returns one where all is well, without a destination.
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
			"GOGC":                  "off", // nobody cleans up for a moment
			"BUILDER_PUBLISH_TOKEN": password, "DOCKER_CONFIG": filepath.Join(dir, "docker"),
		},
	}
}

// whenMended says what makes the fault go away.
func (s *scene) whenMended(f func()) { s.mends = append(s.mends, f) }

func (s *scene) mend() {
	for _, f := range s.mends {
		f()
	}
	s.mends = nil
}

// wheel is the file that is published.
func (s *scene) wheel() string { return filepath.Join(s.cell, "tiny-1.0-py3-none-any.whl") }

// own makes the cell a copy that the scene may change.
func (s *scene) own() {
	s.Helper()
	to := filepath.Join(s.dir, "cell")
	s.check(os.CopyFS(to, os.DirFS(s.cell)))
	s.cell = to
}

// change returns what changes the wheel, as something does that writes to it.
func (s *scene) change() func() {
	s.Helper()
	s.own()
	path := s.wheel()
	right, err := os.ReadFile(path)
	s.check(err)
	s.whenMended(func() { s.check(os.WriteFile(path, right, 0o600)) })
	wrong := bytes.Clone(right)
	wrong[len(wrong)/2] ^= 1
	return sync.OnceFunc(func() {
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			s.Error(err)
		}
	})
}

func (s *scene) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// An outcome is what a process said.
type outcome struct {
	exit           diag.Code
	stdout, stderr string
}

// patience bounds a process: one that hangs is to be seen with what it said.
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
	if ctx.Err() != nil {
		s.Errorf("it hangs: %v", err)
	}
	return outcome{diag.Code(cmd.ProcessState.ExitCode()), stdout.String(), stderr.String()}
}

// signal tells the program that runs.
func (s *scene) signal(sig syscall.Signal) {
	if err := s.process.Load().Signal(sig); err != nil {
		s.Error(err)
	}
}

// sums are the digests of the wheels that may be found.
func (s *scene) sums() map[string]bool {
	all := map[string]bool{}
	for _, dir := range []string{s.cell, s.rival} {
		if dir != "" {
			all[s.sumOf(filepath.Join(dir, filepath.Base(s.wheel())))] = true
		}
	}
	return all
}

func (s *scene) sumOf(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		s.Error(err)
	}
	return sumOf(data)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// when calls f as soon as something happens to a path, or in it to a name that
// matches, and as often as f wishes.
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
