package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The client runs in the started process, with its arguments and streams. The watching
// process ends with it.
func TestLeash(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	must.Succeed(t, os.MkdirAll(filepath.Dir(e.programs.bin("dagger")), 0o755))
	program := "#!/bin/sh\necho \"$$ $*\"\nread line\necho \"$line\"\n"
	must.Succeed(t, os.WriteFile(e.programs.bin("dagger"), []byte(program), 0o755))
	path, err := leashed(e.dir, e.programs.bin("dagger"))
	must.Succeed(t, err)
	cmd := exec.Command(path, "session", "a b")
	cmd.Stdin = strings.NewReader("asked\n")
	start := time.Now()
	out, err := cmd.Output() // returns only when every process has closed the stream
	check.That(t, err == nil && strings.HasSuffix(string(out), "session a b\nasked\n"), "%q, %v", out, err)
	if pid, _, _ := strings.Cut(string(out), " "); pid == "" || time.Since(start) > time.Minute {
		t.Errorf("%q after %v", out, time.Since(start))
	}
	before, err := os.Stat(path)
	must.Succeed(t, err)
	_, err = leashed(e.dir, e.programs.bin("dagger"))
	must.Succeed(t, err)
	after, err := os.Stat(path)
	check.That(t, err == nil && after.ModTime().Equal(before.ModTime()), "it was written again: %v", err)
}
