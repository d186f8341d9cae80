package native

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestACacheIsGivenUpOnlyWhereThatHelps(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	file := e.path("state", "cache.db")
	write := func() {
		t.Helper()
		must.Succeed(t, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("days of work"), 0o644))
	}
	problem := errors.New("the engine ended during its start: signal: killed")
	// starts returns a start function. Its first call must find the cache, its second
	// an empty one. faults are their results.
	starts := func(errs ...error) func() error {
		with := []bool{true, false}
		return func() error {
			if exists(file) != with[0] {
				t.Errorf("started with the cache: %v, want %v", !with[0], with[0])
			}
			err := errs[0]
			with, errs = with[1:], errs[1:]
			return errors.Join(os.MkdirAll(e.path("state"), 0o755), err)
		}
	}
	err := e.comeAgain(t.Context(), problem, starts())
	check.That(t, errors.Is(err, problem), "without a cache: %v", err)
	write()
	err = e.comeAgain(t.Context(), problem, starts(nil))
	check.That(t, err == nil && exists(file), "it was killed once: %v, and the cache is there: %v", err, exists(file))
	err = e.comeAgain(t.Context(), problem, starts(problem, errors.New("no bridge")))
	check.That(t, errors.Is(err, problem) && exists(file), "the cache was at no fault: %v, and it is there: %v", err, exists(file))
	err = e.comeAgain(t.Context(), problem, starts(problem, nil))
	check.That(t, err == nil && !exists(file), "the cache was at fault: %v", err)
	old := filepath.Join(e.aside(), "cache.db")
	check.That(t, exists(old), "the old cache is gone before the new one has served a build")
	write()
	if err := e.setAside(); err != nil || exists(e.path("state")) || !exists(old) {
		t.Errorf("a cache that has served no build: %v, and the old one is there: %v", err, exists(old))
	}
	err = e.Served()
	check.That(t, err == nil && !exists(e.aside()), "after a build: %v", err)
}

// A database panic during a build means a damaged cache. A panic from before the last
// start no longer counts.
func TestDiedOfCache(t *testing.T) {
	e := New(t.TempDir(), t.Logf, Options{})
	const panics = "level=info msg=works\npanic: assertion failed: Page expected to be: 256, but self identifies as 7\n\ngoroutine 1 [running]:\ngo.etcd.io/bbolt/internal/common.Assert(...)\n"
	for name, c := range map[string]struct {
		before, since, want string
	}{
		"at work":             {"", panics, "panic: assertion failed: Page expected to be: 256, but self identifies as 7"},
		"before":              {panics, "level=info msg=works\n", ""},
		"other":               {"", "level=info\npanic: nil pointer\n\ngoroutine 1 [running]:\nmain.main()\n", ""},
		"was killed":          {"", "level=info msg=works\n", ""},
		"beside the database": {"", "fatal error: runtime: out of memory\n\ngoroutine 7 [running]:\nmain.grow()\n\ngoroutine 8 [select]:\ngo.etcd.io/bbolt.(*DB).Update(...)\n", ""},
		"words of a step":     {"", "level=error msg=\"failed to commit x: lstat /h/engine/state/worker/snapshots/snapshots/1/fs/build/dist/d: file name too long: input/output error\"\n", ""},
	} {
		err := errors.Join(
			os.MkdirAll(e.dir, 0o755),
			os.WriteFile(e.path("engine.log"), []byte(c.before+c.since), 0o644),
			os.WriteFile(e.path("log-start"), []byte(strconv.Itoa(len(c.before))), 0o644),
		)
		must.Succeed(t, err)
		check.Same(t, name, c.want, e.diedOfCache())
	}
	check.Same(t, "never started", "", New(t.TempDir(), t.Logf, Options{}).diedOfCache())
}
