package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"builder/internal/build/native"
	"builder/internal/machine/host"
	"builder/test/kit/check"
	"builder/test/kit/golden"
)

// work is the default work of the tests.
var work = Work{Home: "/root/.cache/builder", Engine: EngineState{Kind: Native, Wanted: "v0.19.10", Programs: native.Needs}}

// withRecipe returns a build.
func withRecipe(change func(*Needs)) Work {
	w := work
	w.Recipe = &Needs{Name: "nccl", Cell: "nccl-1"}
	change(w.Recipe)
	return w
}

func TestRecordedHosts(t *testing.T) {
	for _, name := range hosts(t) {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, c := range Examine(t.Context(), recorded(t, name), work).Checks {
				fmt.Fprintf(&b, "%s: %s: %s\n", c.Name, c.Verdict, c.Found)
				if c.Remedy != "" {
					fmt.Fprintf(&b, "    remedy: %s\n", c.Remedy)
				}
				for _, line := range c.Detail {
					b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
				}
			}
			golden.Check(t, filepath.Join("hosts", name+".golden"), []byte(b.String()))
		})
	}
}

// examine returns the result of one check.
func examine(t *testing.T, name string, h host.Host, w Work) Result {
	t.Helper()
	for _, c := range Examine(t.Context(), h, w).Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check is called %s", name)
	return Result{}
}

// On an unreadable host no check passes, and no check reports a thing as absent.
func TestBlindness(t *testing.T) {
	blind := fake(fstest.MapFS{}, nil)
	blind.Disk = func(string) (host.Disk, error) { return host.Disk{}, errors.New("no statfs") }
	blind.FS = denied{}
	for _, c := range Examine(t.Context(), blind, work).Checks {
		check.That(t, c.Verdict != OK && c.Verdict != Warn && c.Verdict != None,
			"%s says %s of what it cannot see: %s", c.Name, c.Verdict, c.Found)
	}
}

// denied is an unreadable root directory.
type denied struct{}

func (denied) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// An empty finding and an interrupted check are unknown.
func TestZeroVerdictIsUnknown(t *testing.T) {
	v := (Finding{}).Verdict
	check.That(t, v == Unknown && v.String() == "unknown", "a finding that says nothing is %s", v)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range Examine(ctx, recorded(t, "bare"), work).Checks {
		check.That(t, c.Verdict == Unknown, "%s: %s after an interruption", c.Name, c.Verdict)
	}
}

func TestLacking(t *testing.T) {
	bare := recorded(t, "bare")
	bare.Disk = func(string) (host.Disk, error) { return host.Disk{Free: 5e8}, nil }
	recipe := withRecipe(func(*Needs) {})
	for name, c := range map[string]struct {
		work Work
		want []string
	}{
		"the engine":                {work, []string{"disk"}},
		"a recipe":                  {recipe, []string{"disk"}},
		"an engine on another host": {Work{Home: "/x", Engine: EngineState{Kind: Named, Address: "tcp://far:1"}, Recipe: recipe.Recipe}, []string{"engine", "disk"}},
	} {
		check.Same(t, name, c.want, Examine(t.Context(), bare, c.work).Lacking())
	}
}

func TestEngine(t *testing.T) {
	bare := recorded(t, "bare")
	user := recorded(t, "bare")
	user.FS.(fstest.MapFS)["proc/self/status"] = &fstest.MapFile{Data: []byte("Uid:\t1000\t1000\t1000\t1000\n")}
	noGo := recorded(t, "bare")
	delete(noGo.FS.(fstest.MapFS), "usr/local/go/bin/go")
	answers := recorded(t, "bare")
	answers.Dial = func(context.Context, string, string) error { return nil }
	says := func(version string, err error) func(context.Context, string) (string, error) {
		return func(context.Context, string) (string, error) { return version, err }
	}
	docker := fake(bare.FS.(fstest.MapFS), map[string]string{})
	for name, c := range map[string]struct {
		host    host.Host
		engine  EngineState
		verdict Verdict
	}{
		"to be built":                {bare, EngineState{Kind: Native}, OK},
		"built":                      {bare, EngineState{Kind: Native, Built: true}, OK},
		"runs":                       {bare, EngineState{Kind: Native, Address: "unix:///e", Built: true, Running: true, Current: true, Version: says("v0.19.10", nil)}, OK},
		"of another kind":            {bare, EngineState{Kind: Native, Running: true}, Warn},
		"no root":                    {user, EngineState{Kind: Native}, Fail},
		"no go":                      {noGo, EngineState{Kind: Native}, Fail},
		"to be copied, no go":        {noGo, EngineState{Kind: Native, From: "/site/engine.tar"}, OK},
		"to be copied, no root":      {user, EngineState{Kind: Native, From: "/site/engine.tar"}, Fail},
		"built, no go":               {noGo, EngineState{Kind: Native, Built: true}, OK},
		"refuses":                    {bare, EngineState{Kind: Named, Address: "unix:///x"}, Fail},
		"answers":                    {answers, EngineState{Kind: Named, Address: "tcp://x:1", Version: says("0.19.10", nil)}, OK},
		"another version":            {answers, EngineState{Kind: Named, Address: "tcp://x:1", Version: says("v0.18.0", nil)}, Fail},
		"hangs":                      {answers, EngineState{Kind: Named, Address: "tcp://x:1", Version: says("", context.DeadlineExceeded)}, Unknown},
		"a container":                {docker, EngineState{Kind: Named, Address: "docker-container://up"}, Unknown},
		"an address without a check": {answers, EngineState{Kind: Named, Address: "kube-pod://x"}, Unknown},
	} {
		c.engine.Wanted = "v0.19.10"
		w := Work{Home: work.Home, Engine: c.engine}
		got := examine(t, "engine", c.host, w)
		check.That(t, got.Verdict == c.verdict, "%s: engine %s: %s", name, got.Verdict, got.Found)
	}
}

func TestDiskOfStateDirectory(t *testing.T) {
	root := fstest.MapFS{"file": &fstest.MapFile{}, "var": &fstest.MapFile{Mode: fs.ModeDir | 0o755}}
	for _, c := range []struct {
		home    string
		disk    host.Disk
		verdict Verdict
		text    string
	}{
		{"/var/cache/builder", host.Disk{Kind: "ext4"}, OK, "/var/cache/builder on ext4, 100 GB free"},
		{"/var", host.Disk{Kind: "nfs"}, Warn, "on nfs"},
		{"/var", host.Disk{Kind: "tmpfs"}, Warn, "on tmpfs"},
		{"/var", host.Disk{Kind: "overlay"}, Warn, "copies whole images"},
		{"/var", host.Disk{Kind: "xfs", NoExec: true}, Fail, "mounted noexec"},
		{"/file/x", host.Disk{Kind: "ext4"}, Fail, "/file is not a directory"},
	} {
		h := fake(root, nil)
		c.disk.Free = 100e9
		h.Disk = func(string) (host.Disk, error) { return c.disk, nil }
		got := examine(t, "disk", h, Work{Home: c.home, Engine: work.Engine})
		check.That(t, got.Verdict == c.verdict && strings.Contains(got.Found, c.text), "%s on %+v: %s: %s", c.home, c.disk, got.Verdict, got.Found)
	}
	readOnly := fake(root, nil)
	readOnly.Writable = func(string) error { return syscall.EROFS }
	got := examine(t, "disk", readOnly, work)
	check.That(t, got.Verdict == Fail && strings.Contains(got.Found, "read-only"), "%s: %s", got.Verdict, got.Found)
}

func TestRoom(t *testing.T) {
	const gb = 1e9
	for name, c := range map[string]struct {
		free int64
		disk Verdict
	}{
		"enough": {3 * gb, OK},
		"little": {3*gb - 1, Fail},
	} {
		h := recorded(t, "bare")
		h.Disk = func(string) (host.Disk, error) { return host.Disk{Kind: "ext4", Free: c.free}, nil }
		got := examine(t, "disk", h, withRecipe(func(*Needs) {}))
		check.That(t, got.Verdict == c.disk, "%s: disk %s: %s", name, got.Verdict, got.Found)
	}
}

// The requirements of the native engine do not apply to other engines.
func TestAnotherEngineNeedsLess(t *testing.T) {
	h := recorded(t, "nvidia-container")
	lacking := []string{"host-packages", "privileges"}
	for _, name := range lacking {
		got := examine(t, name, h, work)
		check.That(t, got.Verdict == Fail || got.Verdict == Warn, "native: %s: %s: %s", name, got.Verdict, got.Found)
		other := Work{Home: "/x", Engine: EngineState{Kind: Container, Program: "docker"}}
		got = examine(t, name, h, other)
		check.That(t, got.Verdict == None && got.Remedy == "", "docker: %s: %s: %s", name, got.Verdict, got.Found)
	}
}

// A container daemon needs the engine's image.
func TestContainerImage(t *testing.T) {
	for name, c := range map[string]struct {
		engine EngineState
		want   Verdict
		says   string
	}{
		"image present":      {EngineState{Image: "x/engine:v1", Holds: true}, OK, "has the image x/engine:v1 of the engine"},
		"image to be pulled": {EngineState{Image: "x/engine:v1"}, Unknown, "has no image of the engine"},
		"not known":          {EngineState{}, Unknown, "has no image of the engine"},
	} {
		c.engine.Kind, c.engine.Program = Container, "docker"
		got := examine(t, "engine", fake(fstest.MapFS{}, nil), Work{Home: "/x", Engine: c.engine})
		check.That(t, got.Verdict == c.want && strings.Contains(got.Found, c.says) && (got.Remedy == "") == c.engine.Holds,
			"%s: %s: %s (%s)", name, got.Verdict, got.Found, got.Remedy)
	}
}
