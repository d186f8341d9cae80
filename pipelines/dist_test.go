package pipelines

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestSortDist(t *testing.T) {
	const whl, tree = "tool-1.0-py3-none-any.whl", "tool-1.0.tar.gz"
	for name, c := range map[string]struct {
		left   []string
		tree   string
		first  string
		beside []string
		says   string
	}{
		"a wheel":                {left: []string{whl}, first: whl},
		"a wheel and an archive": {left: []string{whl, tree}, first: whl, beside: []string{tree}},
		"an archive":             {left: []string{tree}, tree: tree, first: tree},
		"an archive and a log":   {left: []string{tree, "build.log"}, tree: tree, first: tree, beside: []string{"build.log"}},
		"nothing":                {says: "the build left 0 wheels in $BUILDER_DIST, 1 is wanted"},
		"an archive, no wheel":   {left: []string{tree}, says: "the build left 0 wheels"},
		"two wheels":             {left: []string{whl, "x.whl"}, says: "the build left 2 wheels"},
		"another archive":        {left: []string{"other.tar.gz"}, tree: tree, says: "the build left no " + tree},
		"a wheel, no archive":    {left: []string{whl}, tree: tree, says: "the build left no " + tree},
		"a wheel too":            {left: []string{whl, tree}, tree: tree, says: "the build left a wheel in $BUILDER_DIST, and the artifact is " + tree},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range c.left {
				must.Succeed(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			first, beside, err := sortDist(dir, c.tree)
			if c.says != "" {
				check.That(t, diag.CodeOf(err) == diag.Build && strings.Contains(err.Error(), c.says), "%v", err)
				return
			}
			for i := range beside {
				beside[i] = filepath.Base(beside[i])
			}
			check.That(t, err == nil && filepath.Base(first) == c.first && slices.Equal(beside, c.beside), "%s, %v, %v", first, beside, err)
		})
	}
}

// What a build left is measured before it is copied to this host.
func TestMeasureDist(t *testing.T) {
	file := func(name string, size int64) func(dir string) error {
		return func(dir string) error {
			at := filepath.Join(dir, name)
			return errors.Join(os.WriteFile(at, nil, 0o600), os.Truncate(at, size))
		}
	}
	for name, c := range map[string]struct {
		leave func(dir string) error
		says  string
	}{
		"a wheel":       {file("tool-1.0-py3-none-any.whl", 5), ""},
		"a sparse file": {file("big", 40<<30), "more than 16 GiB"},
		"many files": {func(dir string) (err error) {
			for i := range 1001 {
				err = errors.Join(err, file(strconv.Itoa(i), 0)(dir))
			}
			return err
		}, "more than 1000 files"},
		"a directory": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "deep/er"), 0o700) }, "'deep', which is no regular file"},
		"a pipe":      {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }, "'pipe', which is no regular file"},
		"a link":      {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) }, "'link', which is no regular file"},
		"a long name": {file(strings.Repeat("d", 201), 0), "whose name is not at most 200 printable characters of ASCII"},
		"an escape":   {file("\x1b[31m", 0), `'\x1b[31m', whose name`},
		"no UTF-8":    {file("\xff", 0), `'\udcff', whose name`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Succeed(t, c.leave(dir))
			out, err := exec.Command("python3", "-I", "-c", script("dist.py"), dir).CombinedOutput()
			said := strings.TrimSpace(string(out))
			check.That(t, err == nil && (said == "") == (c.says == "") && strings.Contains(said, c.says), "%q, %v", said, err)
		})
	}
}

// The requirements of a cell list its wheel, other cells' wheels and the locked
// packages, each with its digest.
func TestWriteRequirements(t *testing.T) {
	e := lock.Entry{ID: "tool-1.0-cp311", Inputs: []lock.Input{{ID: "nccl-2"}}, Runtime: lock.Image{Wheels: []pypi.File{{Project: "dep", Version: "2.0", SHA256: "cc"}}}}
	made := artifact.Artifact{Name: "The_Tool-1.0+rocm5.7-cp311-cp311-linux_x86_64.whl", SHA256: "aa"}
	input := artifact.Artifact{Name: "nccl-2-py3-none-any.whl", SHA256: "bb"}
	a, err := writeRequirements(e, made, []artifact.Artifact{input}, t.TempDir())
	must.Succeed(t, err)
	text := must.Get(os.ReadFile(a.Path))(t)
	header, lines, _ := strings.Cut(string(text), "\nthe-tool")
	lines = "the-tool" + lines
	line := "\n#   pip install --require-hashes --find-links . --find-links ../nccl-2 -r tool-1.0-cp311.requirements.txt\n"
	check.That(t, strings.Contains(header, line), "the header lacks the line that works beside the wheel:\n%s", header)
	want := "the-tool==1.0+rocm5.7 --hash=sha256:aa\nnccl===2 --hash=sha256:bb\ndep==2.0 --hash=sha256:cc\n"
	check.That(t, lines == want && a.Name == "tool-1.0-cp311.requirements.txt", "%s:\n%s", a.Name, lines)
	e.Inputs = nil
	made.Name = "The_Tool-1.0-cp311-cp311-linux_x86_64.whl" // an index may have this version too
	if a, err = writeRequirements(e, made, nil, t.TempDir()); err == nil {
		text, err = os.ReadFile(a.Path)
	}
	line = "\n#   pip install --require-hashes \"file://$PWD/" + made.Name + "#sha256=aa\" -r tool-1.0-cp311.requirements.txt\n"
	check.That(t, err == nil && strings.Contains(string(text), line), "the header lacks the address of the wheel, %v:\n%s", err, text)
	_, err = writeRequirements(e, artifact.Artifact{Name: "x.whl"}, nil, t.TempDir())
	check.That(t, err != nil, "a wheel without a version has requirements")
}
