package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// compiles is the variable that makes a test process compile in a directory.
const compiles = "BUILDER_TEST_COMPILES"

// A killed builder leaves no compiler behind.
func TestCompilerEndsWithBuilder(t *testing.T) {
	if dir := os.Getenv(compiles); dir != "" {
		t.Fatal(compile(t.Context(), filepath.Join(dir, "go"), dir, filepath.Join(dir, "build.log")))
	}
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	compiler := "#!/bin/sh\necho $$ >" + started + ".tmp\nmv " + started + ".tmp " + started + "\nexec sleep 1000\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "go"), []byte(compiler), 0o755))
	builder := exec.Command(os.Args[0], "-test.run=^TestCompilerEndsWithBuilder$")
	builder.Env = append(os.Environ(), compiles+"="+dir)
	must.Succeed(t, builder.Start())
	pid := 0
	within(t, "the compiler does not start", func() bool {
		text, _ := os.ReadFile(started)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	must.Succeed(t, builder.Process.Kill())
	_ = builder.Wait() // it was killed
	defer syscall.Kill(pid, syscall.SIGKILL)
	within(t, "the compiler is left behind", func() bool { return !running(pid) })
}

// within fails the test if it does not happen in time.
func within(t *testing.T, fault string, happens func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happens(); time.Sleep(10 * time.Millisecond) {
		must.Hold(t, !time.Now().After(deadline), "%v", fault)
	}
}

// running reports whether a process runs. An orphan that nobody waits for does not.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// The client runs in the started process, with its arguments and streams. The watching
// process ends with it.
func TestLeash(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	must.Succeed(t, os.MkdirAll(filepath.Dir(e.programs.bin("dagger")), 0o755))
	program := "#!/bin/sh\necho \"$$ $*\"\nread line\necho \"$line\"\n"
	must.Succeed(t, os.WriteFile(e.programs.bin("dagger"), []byte(program), 0o755))
	path := must.Get(leashed(e.dir, e.programs.bin("dagger")))(t)
	cmd := exec.Command(path, "session", "a b")
	cmd.Stdin = strings.NewReader("asked\n")
	start := time.Now()
	out, err := cmd.Output() // returns only when every process has closed the stream
	check.That(t, err == nil && strings.HasSuffix(string(out), "session a b\nasked\n"), "%q, %v", out, err)
	if pid, _, _ := strings.Cut(string(out), " "); pid == "" || time.Since(start) > time.Minute {
		t.Errorf("%q after %v", out, time.Since(start))
	}
	before := must.Get(os.Stat(path))(t)
	must.Get(leashed(e.dir, e.programs.bin("dagger")))(t)
	after, err := os.Stat(path)
	check.That(t, err == nil && after.ModTime().Equal(before.ModTime()), "it was written again: %v", err)
}
