package native

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestEngine builds and starts engines for two homes at once, uses both, kills one, and
// checks that nothing is left. It needs root, and ten minutes with an empty build
// cache.
func TestEngine(t *testing.T) {
	if os.Getenv("BUILDER_TEST_ENGINE") == "" {
		t.Skip("BUILDER_TEST_ENGINE is not set")
	}
	t.Setenv("HTTP_PROXY", "") // set, so a leak of the environment into an exec would show it
	rootfs := buildProbe(t)
	mounts, resolv, interfaces := read(t, "/proc/self/mounts"), read(t, "/etc/resolv.conf"), links(t)
	a, b := engine(t, Options{}), engine(t, Options{})
	t.Cleanup(func() {
		a.Down(context.Background())
		b.Down(context.Background())
	})

	upAtOnce(t, a, a, b)
	for _, e := range []*Engine{a, b} {
		start := time.Now()
		r, err := e.Up(t.Context())
		if took := time.Since(start); err != nil || r.Started || took > 200*time.Millisecond {
			t.Fatalf("up again: %+v, %v, after %s", r, err, took)
		} else {
			t.Logf("up again: %s", took)
		}
		checkExec(t, e, r, rootfs)
		s, err := e.Status(t.Context())
		if err != nil || !s.Built || !s.Running || s.PID <= 1 || s.Address != r.Address || s.StateBytes == 0 || time.Since(s.Since) > time.Hour {
			t.Errorf("status: %+v, %v", s, err)
		}
	}

	before, _ := b.pid()
	killed, _ := a.pid()
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, alive := a.pid(); alive; _, alive = a.pid() {
		time.Sleep(time.Millisecond)
	}
	r, err := a.Up(t.Context())
	if err != nil || !r.Started {
		t.Fatalf("up after a kill: %+v, %v", r, err)
	}
	checkExec(t, a, r, rootfs)

	if err := a.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkGone(t, a)
	if after, _ := b.pid(); after != before {
		t.Errorf("the other home's engine was %d, is %d", before, after)
	}
	if err := b.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkGone(t, b)
	if read(t, "/proc/self/mounts") != mounts {
		t.Error("the host's mounts have changed")
	}
	if read(t, "/etc/resolv.conf") != resolv {
		t.Error("the host's resolv.conf has changed")
	}
	if now := links(t); now != interfaces {
		t.Errorf("the host's network interfaces were %s, are %s", interfaces, now)
	}
}

// An engine without clients stops by itself.
func TestIdle(t *testing.T) {
	if os.Getenv("BUILDER_TEST_ENGINE") == "" {
		t.Skip("BUILDER_TEST_ENGINE is not set")
	}
	e := engine(t, Options{Idle: time.Second})
	t.Cleanup(func() { e.Down(context.Background()) })
	if _, err := e.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if _, alive := e.pid(); !alive {
			break
		}
		if time.Since(start) > time.Minute {
			t.Fatal("still running")
		}
	}
}

// A new engine starts in the place of a deleted home and works while the old engine is
// still ending.
func TestDeletedHome(t *testing.T) {
	if os.Getenv("BUILDER_TEST_ENGINE") == "" {
		t.Skip("BUILDER_TEST_ENGINE is not set")
	}
	rootfs := buildProbe(t)
	e := engine(t, Options{})
	t.Cleanup(func() { e.Down(context.Background()) })
	if _, err := e.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	orphan, _ := e.pid()
	t.Cleanup(func() { syscall.Kill(orphan, syscall.SIGKILL) })
	if err := os.RemoveAll(e.dir); err != nil {
		t.Fatal(err)
	}
	r, err := e.Up(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkExec(t, e, r, rootfs)
}

// An interrupted build leaves nothing that could be mistaken for a finished one.
func TestInterruptedBuild(t *testing.T) {
	if os.Getenv("BUILDER_TEST_ENGINE") == "" {
		t.Skip("BUILDER_TEST_ENGINE is not set")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	e := engine(t, Options{})
	goTool, err := e.goTool()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.build(ctx, goTool); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(e.path("build-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// upAtOnce calls Up on all engines at once. Exactly one caller starts the engine of
// each home.
func upAtOnce(t *testing.T, engines ...*Engine) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	started := map[string]int{}
	for _, e := range engines {
		wg.Go(func() {
			r, err := e.Up(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Started {
				started[e.dir]++
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, e := range engines {
		if started[e.dir] != 1 {
			t.Fatalf("%s was started %d times", e.dir, started[e.dir])
		}
	}
}

// checkExec runs the probe in a container. It must have no network, and nothing of the
// host's environment.
func checkExec(t *testing.T, e *Engine, r Running, rootfs string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), e.bin("dagger"), "--silent", "core", "container", "with-rootfs", "--directory", rootfs,
		"with-exec", "--args", "/probe", "stdout")
	cmd.Env = append(os.Environ(), "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+r.Address, "DO_NOT_TRACK=1", "DAGGER_NO_NAG=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != "interface lo" {
		t.Errorf("the probe found:\n%s", got)
	}
}

// checkGone checks that an engine left nothing on the host.
func checkGone(t *testing.T, e *Engine) {
	t.Helper()
	if _, alive := e.pid(); alive || exists(e.path("mask")) || exists(e.path("state.json")) {
		t.Error("the engine is still there")
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), e.dir+"/") {
			t.Errorf("%s is left: %q", filepath.Dir(path), text)
		}
	}
}

// buildProbe makes a root file system with the probe as its only program.
func buildProbe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// links names the network interfaces of the host.
func links(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
