package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// made returns an engine with its programs in place, as after a build.
func made(t *testing.T) *Engine {
	t.Helper()
	e := engine(t, Options{})
	err := os.MkdirAll(e.dir, 0o755)
	if err == nil {
		err = e.appear(func(tmp string) error {
			for _, name := range programs {
				if err := os.WriteFile(filepath.Join(tmp, "bin", name), []byte("program "+name), 0o755); err != nil {
					return err
				}
			}
			return writeSums(tmp)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// taken calls take for a new home with the programs of another, and returns the log.
func taken(t *testing.T, from *Engine) (e *Engine, said string) {
	t.Helper()
	e = New(t.TempDir(), func(format string, args ...any) { said += fmt.Sprintf(format, args...) }, Options{From: filepath.Dir(from.dir)})
	e.take()
	return e, said
}

// A second home copies the programs and does not build them.
func TestProgramsOfAnotherHomeAreTaken(t *testing.T) {
	from := made(t)
	e, said := taken(t, from)
	if !strings.Contains(said, "copied the engine") {
		t.Errorf("it said %q", said)
	}
	for _, name := range programs {
		if data, err := os.ReadFile(e.bin(name)); err != nil || string(data) != "program "+name {
			t.Errorf("%s: %q, %v", name, data, err)
		}
		if info, err := os.Stat(e.bin(name)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := e.build(t.Context(), "/no/go"); err != nil {
		t.Errorf("they are built again: %v", err)
	}
	if err := os.WriteFile(e.bin("init"), []byte("damaged"), 0o755); err != nil {
		t.Fatal(err)
	}
	if again, said := taken(t, from); !exists(again.bin("")) {
		t.Errorf("what happened to one home happened to the other: %s", said)
	}
	if third, said := taken(t, e); exists(third.bin("")) || !strings.Contains(said, "does not have the digests of its build") {
		t.Errorf("taken from a home where they were damaged: %s", said)
	}
}

// Programs that another user may have changed, or with other digests, are refused.
func TestProgramsThatOthersCouldChangeAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *Engine) error
		said   string
	}{
		"no programs":                 {func(e *Engine) error { return os.RemoveAll(e.bin("")) }, "no such file"},
		"no home":                     {func(e *Engine) error { return os.RemoveAll(e.dir) }, ""},
		"programs of another version": {func(e *Engine) error { return os.Rename(e.path("build-"+buildKey()), e.path("build-other")) }, ""},
		"a damaged program":           {func(e *Engine) error { return os.WriteFile(e.bin("engine"), []byte("program Engine"), 0o755) }, "does not have the digests of its build"},
		"a truncated program":         {func(e *Engine) error { return os.Truncate(e.bin("dagger"), 3) }, "does not have the digests of its build"},
		"a missing program":           {func(e *Engine) error { return os.Remove(e.bin("init")) }, "no such file"},
		"no file of digests":          {func(e *Engine) error { return os.Remove(e.path("build-"+buildKey(), sumsName)) }, "no such file"},
		"all may write a program":     {func(e *Engine) error { return os.Chmod(e.bin("engine"), 0o777) }, "other users can write"},
		"a group may write the sums": {
			func(e *Engine) error { return os.Chmod(e.path("build-"+buildKey(), sumsName), 0o664) }, "other users can write",
		},
		"all may write beside a program": {func(e *Engine) error { return os.Chmod(e.bin(""), 0o777) }, "other users can write"},
		"all may write above":            {func(e *Engine) error { return os.Chmod(filepath.Dir(e.dir), 0o777) }, "other users can write"},
		"a link": {func(e *Engine) error {
			return errors.Join(os.Rename(e.bin("engine"), e.path("moved")), os.Symlink(e.path("moved"), e.bin("engine")))
		}, "is not a regular file"},
		"a program of another user": {func(e *Engine) error { return os.Chown(e.bin("engine"), 65533, 65533) }, "another user"},
		"a home of another user":    {func(e *Engine) error { return os.Chown(filepath.Dir(e.dir), 65533, 65533) }, "another user"},
	} {
		t.Run(name, func(t *testing.T) {
			from := made(t)
			if err := c.change(from); err != nil {
				if strings.Contains(name, "another user") && os.Geteuid() != 0 {
					t.Skip("only root gives files away")
				}
				t.Fatal(err)
			}
			e, said := taken(t, from)
			if exists(e.bin("")) || !strings.Contains(said, c.said) || (c.said == "") != (said == "") {
				t.Errorf("taken: %v, it said %q", exists(e.bin("")), said)
			}
			if left, _ := filepath.Glob(e.path("build-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
