package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"builder/test/kit/must"
)

// oneTemporary makes one directory for all temporary files of a test.
func oneTemporary(t *testing.T) (dir string) {
	t.Helper()
	dir = must.Get(os.MkdirTemp("", "builder-e2e-*"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // for the chapter with an ordinary user
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

// clearsUp cleans up if the test is interrupted, runs out of time or loses its parent
// process. Otherwise engines would run on for hours and leave their files behind.
func (b *tool) clearsUp(dir string) {
	var clearing sync.Mutex // never unlocked: chapters that fail during the cleanup must not end the test
	ended, signals := make(chan struct{}), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	b.t.Cleanup(func() { clearing.Lock(); signal.Stop(signals); close(ended) })
	late := time.Now().Add(24 * time.Hour)
	if end, bounded := b.t.Deadline(); bounded {
		late = end.Add(-time.Minute)
	}
	go func() {
		why := "it lost the process that started it, or has no time left"
		for parent := os.Getppid(); time.Now().Before(late) && os.Getppid() == parent; {
			select {
			case <-ended:
				return
			case s := <-signals:
				why, late = s.String(), time.Time{}
			case <-time.After(time.Second):
			}
		}
		clearing.Lock()
		fmt.Fprintf(os.Stderr, "e2e: %s: ends what it started, and removes what it made in %s\n", why, dir)
		b.clearUp(dir)
		os.Exit(1)
	}()
}

// clearUp ends the started processes and engines, and removes a directory with all
// mounts in it. It renames the tool first, so that no chapter can start it meanwhile.
func (b *tool) clearUp(dir string) {
	own := *b
	own.path += "-last"
	if err := os.Rename(b.path, own.path); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	homes := map[string]bool{b.home: true}
	for pid, env := range processes() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if args := strings.Split(string(line), "\x00"); len(args) > 1 && strings.HasPrefix(args[1], dir+"/") && filepath.Base(args[1]) == "engine.sh" {
			homes[filepath.Dir(filepath.Dir(args[1]))] = true
		}
		if slices.Contains(strings.Split(env, "\x00"), "TMPDIR="+dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for own.home = range maps.Keys(homes) {
		ctx, done := context.WithTimeout(context.Background(), 15*time.Second)
		if out, err := own.command(ctx, "engine", "down").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %v: %s\n", err, out)
		}
		done()
	}
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			_ = exec.Command("umount", "-l", f[1]).Run()
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
}
