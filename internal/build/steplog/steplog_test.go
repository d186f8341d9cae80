package steplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"builder/internal/build/steplog"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func create(t *testing.T, dir, step string) *os.File {
	t.Helper()
	f, err := steplog.Create(dir, step)
	must.Succeed(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func open(t *testing.T, dir, name string) *os.File {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must.Succeed(t, err)
	defer root.Close()
	f, err := steplog.Open(root, name)
	must.Succeed(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), steplog.Dir)
	writer := create(t, dir, "gate import")
	reader := open(t, dir, "gate-import.log")
	for range 2 { // Running has no side effect
		check.That(t, steplog.Running(reader), "the step runs")
	}
	writer.Close()
	check.That(t, !steplog.Running(reader), "the step has ended")
}

// safe is a buffer for concurrent use.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestFollow(t *testing.T) {
	dir := t.TempDir()
	writer, reader := create(t, dir, "build"), open(t, dir, "build.log")
	fmt.Fprintln(writer, "first")
	var seen safe
	ended := make(chan error)
	go func() { ended <- steplog.Follow(t.Context(), &seen, reader) }()
	for !strings.Contains(seen.String(), "first") {
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(writer, "last")
	writer.Close()
	err := <-ended
	check.That(t, err == nil && seen.String() == "first\nlast\n", "%v, %q", err, seen.String())
}

// A follower does not switch to the log of a later run, and a cancelled context ends
// it.
func TestFollowEnds(t *testing.T) {
	dir := t.TempDir()
	create(t, dir, "build").Close()
	old := open(t, dir, "build.log")
	create(t, dir, "build")
	err := steplog.Follow(t.Context(), io.Discard, old)
	check.That(t, err == nil, "%v", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = steplog.Follow(ctx, io.Discard, open(t, dir, "build.log"))
	check.That(t, errors.Is(err, context.Canceled), "%v", err)
}

// A killed run holds no lock.
func TestKilledWriter(t *testing.T) {
	if dir := os.Getenv("STEPLOG_WRITER"); dir != "" {
		_, err := steplog.Create(dir, "build")
		must.Succeed(t, err)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	cmd.Env = append(os.Environ(), "STEPLOG_WRITER="+dir)
	out, err := cmd.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	_, err = out.Read(make([]byte, 1))
	must.Succeed(t, err)
	reader := open(t, dir, "build.log")
	check.That(t, steplog.Running(reader), "the step runs")
	must.Succeed(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	err = steplog.Follow(t.Context(), io.Discard, reader)
	check.That(t, err == nil && !steplog.Running(reader), "%v: a killed run is followed for ever", err)
}

// A directory of results may come from an untrusted machine.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t,
		os.Symlink("/etc/passwd", filepath.Join(dir, "link.log")),
		os.Mkdir(filepath.Join(dir, "directory.log"), 0o755),
		syscall.Mkfifo(filepath.Join(dir, "pipe.log"), 0o600),
	)
	root, err := os.OpenRoot(dir)
	must.Succeed(t, err)
	defer root.Close()
	for _, name := range []string{"link.log", "directory.log", "pipe.log", "../x.log", "none.log"} {
		if f, err := steplog.Open(root, name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("kept"), 0o600))
	must.Succeed(t, os.Symlink("secret", filepath.Join(dir, "build.log")))
	fmt.Fprint(create(t, dir, "build"), "written")
	if data, err := os.ReadFile(filepath.Join(dir, "secret")); err != nil || string(data) != "kept" {
		t.Errorf("a link was written through: %q, %v", data, err)
	}
}
