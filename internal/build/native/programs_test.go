package native

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/owned"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// programNames are the programs made by the build, below its directory.
var programNames = []string{"bin/dagger", "bin/dialstdio", "bin/engine", "bin/init"}

// made returns an engine with its programs in place, as after a build.
func made(t *testing.T) *Engine {
	t.Helper()
	e := engine(t, Options{})
	must.Succeed(t, e.programs.appear(func(tmp string) (err error) {
		for _, name := range programNames {
			err = errors.Join(err, os.WriteFile(filepath.Join(tmp, name), []byte("program "+name), 0o755))
		}
		return err
	}))
	return e
}

// unpacked calls take for a new home with an image, and returns the log.
func unpacked(t *testing.T, image string) (e *Engine, said string) {
	t.Helper()
	log := func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
	e = New(t.TempDir(), log, Options{Image: func(context.Context) (string, error) { return image, nil }})
	must.Succeed(t, e.programs.take(t.Context(), e.opts.Image))
	return e, said
}

// Programs with other digests than those of their build are made again before a start,
// and so are programs that another directory brought with digests of its own.
func TestChangedProgramsAreMadeAgain(t *testing.T) {
	for name, change := range map[string]func(e *Engine, dir string) error{
		"a damaged engine": func(e *Engine, dir string) error {
			return os.WriteFile(e.programs.bin("engine"), []byte("program Engine"), 0o755)
		},
		"a truncated client":   func(e *Engine, dir string) error { return os.Truncate(e.programs.bin("dagger"), 3) },
		"a missing init":       func(e *Engine, dir string) error { return os.Remove(e.programs.bin("init")) },
		"an engine for others": func(e *Engine, dir string) error { return os.Chmod(e.programs.bin("engine"), 0o777) },
		"a directory": func(e *Engine, dir string) error {
			return errors.Join(os.Remove(e.programs.bin("init")), os.Mkdir(e.programs.bin("init"), 0o755))
		},
		"a link": func(e *Engine, dir string) error {
			return errors.Join(os.Remove(e.programs.bin("init")), os.Symlink("/bin/true", e.programs.bin("init")))
		},
		"no record": func(e *Engine, dir string) error { return os.Remove(owned.Seals(dir)) },
		"another directory with a record of its own": func(e *Engine, dir string) error {
			return errors.Join(os.WriteFile(e.programs.bin("engine"), []byte("evil"), 0o755), owned.Seal(dir, filepath.Join(dir, "sums")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := unpacked(t, imageOf(t, made(t), buildKey(), nil))
			must.Succeed(t, change(e, e.programs.dir))
			var said string
			e.programs.log = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
			must.Succeed(t, e.programs.take(t.Context(), e.opts.Image))
			for _, name := range programNames {
				data, err := os.ReadFile(filepath.Join(e.programs.dir, name))
				check.That(t, err == nil && string(data) == "program "+name, "%s: %q, %v", name, data, err)
			}
			check.That(t, strings.Contains(said, "making the programs of the engine again: "), "it said %q", said)
		})
	}
}

// imageOf returns the path of an image with the programs of an engine, for a build.
// change may change its members.
func imageOf(t *testing.T, e *Engine, build string, change func(map[string]member)) string {
	t.Helper()
	members := map[string]member{}
	for path, name := range imagePrograms {
		members[path] = member{from: e.programs.bin(name)}
	}
	if change != nil {
		change(members)
	}
	path := filepath.Join(t.TempDir(), "engine.tar")
	must.Succeed(t, writeImage(path, members, build))
	return path
}

// Programs of an image are copied and not built.
func TestProgramsOfAnImageAreTaken(t *testing.T) {
	e, said := unpacked(t, imageOf(t, made(t), buildKey(), nil))
	for _, name := range programNames {
		data, err := os.ReadFile(filepath.Join(e.programs.dir, name))
		info, _ := os.Stat(filepath.Join(e.programs.dir, name))
		check.That(t, err == nil && string(data) == "program "+name && info.Mode().Perm() == 0o755,
			"%s: %q, %v; it said %q", name, data, err, said)
	}
	err := e.programs.build(t.Context(), "/no/go")
	check.That(t, err == nil, "they are built again: %v", err)
}

// An image of another build, or without all programs, is refused and leaves nothing.
func TestImagesThatAreNotTaken(t *testing.T) {
	for name, c := range map[string]struct {
		build  string
		change func(map[string]member)
		cut    func([]byte) []byte
		said   string
	}{
		"another build":     {build: "0123", said: `it has build "0123", this builder needs`},
		"a missing program": {change: func(m map[string]member) { delete(m, "usr/local/bin/dagger") }, said: "lacks usr/local/bin/dagger: EOF"},
		"a link as program": {change: func(m map[string]member) { m["usr/local/bin/dagger"] = member{link: "/bin/sh"} }, said: "lacks usr/local/bin/dagger: EOF"},
		"truncated":         {cut: func(image []byte) []byte { return image[:len(image)/2] }, said: "reading "},
		"empty":             {cut: func([]byte) []byte { return nil }, said: "reading an image of `builder engine image`: "},
		"no image":          {cut: func([]byte) []byte { return bytes.Repeat([]byte("no"), 600) }, said: "reading an image of `builder engine image`: "},
	} {
		t.Run(name, func(t *testing.T) {
			image := imageOf(t, made(t), cmp.Or(c.build, buildKey()), c.change)
			if c.cut != nil {
				whole, err := os.ReadFile(image)
				must.Succeed(t, err, os.WriteFile(image, c.cut(whole), 0o644))
			}
			e, said := unpacked(t, image)
			check.That(t, !exists(e.programs.bin("")) && strings.Contains(said, c.said), "taken: %v, it said %q", exists(e.programs.bin("")), said)
			left, _ := filepath.Glob(filepath.Join(e.dir, "build-*"))
			check.That(t, len(left) == 0, "left: %v", left)
		})
	}
}

// An image that cannot be had stops the start: its place is wrong, or its digest.
func TestImageThatCannotBeHad(t *testing.T) {
	wrong := errors.New("wrong digest")
	e := New(t.TempDir(), t.Logf, Options{Image: func(context.Context) (string, error) { return "", wrong }})
	err := e.programs.take(t.Context(), e.opts.Image)
	check.That(t, errors.Is(err, wrong) && !exists(e.dir), "%v, left: %v", err, exists(e.dir))
}
