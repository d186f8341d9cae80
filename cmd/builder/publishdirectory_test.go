package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
	"builder/test/kit/check"
)

func (s *scene) openDirectory() {
	s.to, s.flags = "file:"+s.index(), []string{"--no-check"}
	s.look = s.lookIntoDirectory
}

// index returns a path in the directory to publish to.
func (s *scene) index(names ...string) string {
	return filepath.Join(append([]string{s.dir, "index"}, names...)...)
}

func directoryFaults() []fault {
	const name = "tiny-1.0-py3-none-any.whl"
	return []fault{
		{
			"the disk is full", func(s *scene) { s.fill() },
			diag.Publish, `publishing ` + name + `: write .*: no space left on device`,
			"free space on the disk of the index, and publish again; pages list only complete files", nothing,
		},
		{
			"the file size limit is too low", func(s *scene) { s.cramp() },
			diag.Publish, `publishing ` + name + `: write .*: file too large`,
			"raise the file size limit (ulimit -f), and publish again", nothing,
		},
		{
			"the directory is read-only", func(s *scene) { s.protect() },
			diag.Publish, `opening the index: locking: open .*/index/.lock: (read-only file system|permission denied)`,
			"make the index writable for this user, or publish as its owner", nothing,
		},
		{
			"pip cannot install the wheel", func(s *scene) { s.python("echo no wheel fits; exit 1") },
			diag.Publish, `installing ` + name + ` from file:.*/simple/ with pip: .*no wheel fits`,
			"the new files were withdrawn; --no-check publishes without this check", nothing,
		},
		{
			"an interruption while pip installs", func(s *scene) { s.python("kill -INT $PPID; exec /bin/sleep 20") },
			diag.Interrupted, `interrupt`, "", nothing,
		},
		{
			"builder is killed while pip installs", func(s *scene) { s.python("kill -KILL $PPID") },
			killed, ``, "", whole,
		},
		{
			"builder is killed while it copies", func(s *scene) { s.killWhileCopying() },
			killed, ``, "", nothing,
		},
		{
			"builder was killed while it published other bytes", func(s *scene) { s.killedBefore() },
			diag.OK, `^$`, "", whole,
		},
		{
			"an interruption while another process publishes", func(s *scene) { s.interruptWhileWaiting() },
			diag.Interrupted, `interrupt`, "", nothing,
		},
		{
			"the same bytes are published at once", func(s *scene) { s.race(s.made.cell) },
			diag.OK, `^$`, "", whole,
		},
		{
			"other bytes are published at once", func(s *scene) { s.race(s.made.other) },
			diag.Publish, name + ` is already published with sha256 [0-9a-f]{64}, this file has [0-9a-f]{64}`,
			"a published file never changes: give the build another version, or publish to another place", whole,
		},
	}
}

// fill mounts a disk smaller than a wheel as the index. The next row tests a failing
// write without a mount.
func (s *scene) fill() {
	if err := s.mount("size=512k", 0); err != nil {
		s.Skipf("a full disk has to be mounted: %v", err)
	}
	s.whenMended(func() { s.check(s.mount("size=64m", syscall.MS_REMOUNT)) })
}

// mount mounts a new file system as the index.
func (s *scene) mount(options string, flags uintptr) error {
	s.check(os.MkdirAll(s.index(), 0o755))
	err := syscall.Mount("tmpfs", s.index(), "tmpfs", flags, options)
	if err == nil && flags&syscall.MS_REMOUNT == 0 {
		s.Cleanup(func() { s.check(syscall.Unmount(s.index(), syscall.MNT_DETACH)) })
	}
	return err
}

func (s *scene) cramp() {
	s.program = "cramped"
	s.whenMended(func() { s.program = "hasty" })
}

// protect makes the index read-only. Permissions do not restrict root, so for root it
// mounts a read-only file system.
func (s *scene) protect() {
	if os.Geteuid() != 0 {
		s.check(os.MkdirAll(s.index(), 0o755))
		s.check(os.Chmod(s.index(), 0o555))
		s.whenMended(func() { s.check(os.Chmod(s.index(), 0o755)) })
		return
	}
	if err := s.mount("size=64m", syscall.MS_RDONLY); err != nil {
		s.Skipf("root may write everywhere, and not mount: %v", err)
	}
	s.whenMended(func() { s.check(s.mount("size=64m", syscall.MS_REMOUNT)) })
}

// lock holds the lock of the index until the given number of attempts, then calls f and
// releases the lock.
func (s *scene) lock(asks int32, f func()) {
	var asked atomic.Int32
	s.hold(func(free func()) bool {
		if asked.Add(1) < asks {
			return true
		}
		f()
		free()
		return false
	})
}

// hold holds the lock of the index until it is freed or the fault is mended. It calls f
// at each attempt to lock until f returns false.
func (s *scene) hold(f func(free func()) (more bool)) {
	s.check(os.MkdirAll(s.index(), 0o755))
	path := s.index(".lock")
	unlock, err := store.Lock(s.Context(), path, nil)
	s.check(err)
	free := sync.OnceFunc(unlock)
	s.whenMended(free)
	s.Cleanup(free)
	s.when(path, syscall.IN_OPEN, anything, func() bool { return f(free) })
}

// race publishes a second result at the same time and releases the lock only after both
// have started.
func (s *scene) race(other string) {
	s.other = other
	s.lock(8, func() {})
}

// python installs a fake pip, which builder runs to check the index as a client.
func (s *scene) python(script string) {
	bin := filepath.Join(s.dir, "bin")
	s.check(os.MkdirAll(bin, 0o755))
	s.check(os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	s.flags, s.env["PATH"] = nil, bin
	s.whenMended(func() { s.flags, s.env["PATH"] = []string{"--no-check"}, "" })
}

var (
	anything = regexp.MustCompile(``)
	copying  = regexp.MustCompile(`\.tiny-1\.0-py3-none-any\.whl\.[0-9]+\.tmp`)
)

func (s *scene) killWhileCopying() {
	folder := s.index("files", "tiny")
	s.check(os.MkdirAll(folder, 0o755))
	s.when(folder, syscall.IN_MODIFY, copying, func() bool {
		s.signal(syscall.SIGKILL)
		return false
	})
}

// killedBefore leaves the partial files of another build whose publication was killed.
func (s *scene) killedBefore() {
	s.killWhileCopying()
	got := s.publish(s.made.other)
	check.That(s, got.exit == killed, "exit code %d\n%s", got.exit, got.stderr)
}

// interruptWhileWaiting holds the lock until the program is interrupted.
func (s *scene) interruptWhileWaiting() {
	var asked atomic.Int32
	s.hold(func(func()) bool {
		if asked.Add(1) < 3 {
			return true
		}
		s.signal(syscall.SIGINT)
		return false
	})
}

// lookIntoDirectory reads an index as a client does: every file named by a page must be
// complete and have the digest of the page. Unfinished files must be hidden.
func (s *scene) lookIntoDirectory() remains {
	pages, keys := s.lookAtPages(), s.lookAtKeys()
	s.lookForLeftovers(keys)
	switch {
	case pages && keys:
		return whole
	case keys:
		return partly
	case pages:
		s.Error("a page names what has no key")
	}
	return nothing
}

var linked = regexp.MustCompile(`href="\.\./\.\./([^"#]*)#sha256=([0-9a-f]{64})"[^>]*data-core-metadata="sha256=([0-9a-f]{64})"`)

// lookAtPages reports whether the page of the project names the wheel.
func (s *scene) lookAtPages() bool {
	s.Helper()
	links := linked.FindAllStringSubmatch(string(s.read("simple", "tiny", "index.html")), -1)
	for _, m := range links {
		s.compare(m[1], m[2], m[3])
	}
	check.That(s, len(links) <= 1, "the page names %v", links)
	return len(links) == 1
}

// read returns the content of a file of the index, or nil if it does not exist.
func (s *scene) read(names ...string) []byte {
	s.Helper()
	data, err := os.ReadFile(s.index(names...))
	check.That(s, err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR), "%v", err)
	return data
}

// compare checks the digests of a wheel named by a page and of its metadata.
func (s *scene) compare(path, sum, metadata string) {
	s.Helper()
	if got := s.sumOf(s.index(filepath.FromSlash(path))); got != sum || !s.sums()[sum] {
		s.Errorf("a page names %s with %s, there is %s", path, sum, got)
	}
	if got := s.sumOf(s.index(filepath.FromSlash(path) + ".metadata")); got != metadata {
		s.Errorf("a page names the metadata of %s with %s, there is %s", path, metadata, got)
	}
}

// lookAtKeys reports whether --from finds and takes the cell.
func (s *scene) lookAtKeys() bool {
	s.Helper()
	names, err := filepath.Glob(s.index("keys", "*.json"))
	s.check(err)
	if len(names) == 0 {
		return false
	}
	x := index.Open(s.index())
	r, err := x.Find(s.Context(), strings.TrimSuffix(filepath.Base(names[0]), ".json"))
	if err == nil {
		_, err = x.Take(s.Context(), r, s.TempDir(), func(offered, _ []artifact.Artifact) ([]artifact.Artifact, error) { return offered, nil })
	}
	check.That(s, err == nil && len(names) <= 1 && s.sums()[r.SHA256], "%d keys, %v", len(names), err)
	return true
}

// lookForLeftovers checks that unfinished files are hidden, and that none are left if
// the wheel is there.
func (s *scene) lookForLeftovers(there bool) {
	s.Helper()
	err := filepath.WalkDir(s.index(), func(path string, d fs.DirEntry, err error) error {
		check.That(s, err != nil || !strings.HasSuffix(d.Name(), ".tmp") || (!there && strings.HasPrefix(d.Name(), ".")),
			"%s is left", path)
		return err
	})
	check.That(s, err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR), "%v", err)
}
