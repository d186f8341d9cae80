package pipelines

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// The scripts to unpack and repack a released wheel run with this host's interpreter.

const released = "tool-1.0-cp311-cp311-manylinux2014_x86_64.whl"

// tool returns a release in the form some projects publish: the file was renamed after
// packing, and its modules are below .data.
func tool() wheeltest.Wheel {
	return wheeltest.Wheel{
		Name: released,
		Tags: []string{"cp311-cp311-linux_x86_64"},
		Files: []wheeltest.File{
			{Name: "tool/run", Text: "#!/bin/sh\n", Mode: 0o755},
			{Name: "tool-1.0.data/purelib/tool/__init__.py", Text: "VARIABLE = 'A'\n"},
		},
	}
}

// python runs a script of this package in a directory and returns its output.
func python(t *testing.T, dir, name string, env []string, args ...string) (string, error) {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	cmd := exec.Command(interpreter, append([]string{"-I", "-c", script(name)}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unpacked returns the tree of a wheel after the source step.
func unpacked(t *testing.T, file []byte) (tree, says string, err error) {
	t.Helper()
	at := must.File(t, released, file)
	tree = t.TempDir()
	says, err = python(t, tree, "unpack.py", nil, at, tree)
	return tree, says, err
}

// repacked returns the wheel made from a tree.
func repacked(t *testing.T, tree string, args ...string) (path, says string, err error) {
	t.Helper()
	dist := t.TempDir()
	env := []string{"BUILDER_SOURCE=" + released, "BUILDER_DIST=" + dist, "SOURCE_DATE_EPOCH=1700000000"}
	says, err = python(t, tree, "repack.py", env, args...)
	return filepath.Join(dist, strings.Replace(released, "1.0", "1.0+rocm6.1", 1)), says, err
}

func TestRepack(t *testing.T) {
	tree, says, err := unpacked(t, tool().Bytes())
	must.Hold(t, err == nil, "%v: %s", err, says)
	changed := filepath.Join(tree, "tool-1.0.data/purelib/tool/__init__.py")
	must.Succeed(t, os.WriteFile(changed, []byte("VARIABLE = 'B'\n"), 0o644))
	first, says, err := repacked(t, tree, "--local", "rocm6.1")
	must.Hold(t, err == nil, "%v: %s", err, says)
	w := must.Get(wheel.Open(first))(t)
	defer w.Close()
	problems := w.Check()
	check.That(t, len(problems) == 0, "the wheel is not in order: %q", problems)
	version := w.Metadata.Get("Version")
	check.That(t, version == "1.0+rocm6.1" && w.Metadata.Get("Name") == "tool", "METADATA says %s %s", w.Metadata.Get("Name"), version)
	tags := w.WheelInfo.Values("Tag")
	check.That(t, len(tags) == 1 && tags[0] == "cp311-cp311-manylinux2014_x86_64", "WHEEL says %v", tags)
	for name, want := range map[string]string{"tool/run": "#!/bin/sh\n", "tool-1.0+rocm6.1.data/purelib/tool/__init__.py": "VARIABLE = 'B'\n"} {
		have, err := w.ReadFile(name, 100)
		check.That(t, err == nil && string(have) == want, "%s: %q, %v", name, have, err)
	}
	for _, f := range w.Files {
		want := fs.FileMode(0o644)
		if f.Name == "tool/run" {
			want = 0o755
		}
		check.That(t, f.Mode.Perm() == want, "%s has mode %v", f.Name, f.Mode)
	}
}

// Repacking a tree twice gives the same file, whatever the times and order of writing
// the tree.
func TestRepackIsAFunctionOfTheTree(t *testing.T) {
	var made [][]byte
	for range 2 {
		tree, says, err := unpacked(t, tool().Bytes())
		must.Hold(t, err == nil, "%v: %s", err, says)
		late := time.Unix(1800000000+int64(len(made)), 0)
		must.Succeed(t, os.Chtimes(filepath.Join(tree, "tool/run"), late, late))
		path, says, err := repacked(t, tree, "--local", "rocm6.1")
		must.Hold(t, err == nil, "%v: %s", err, says)
		data := must.Get(os.ReadFile(path))(t)
		made = append(made, data)
	}
	check.That(t, bytes.Equal(made[0], made[1]), "two repacks differ")
}

const info = "tool-1.0.dist-info/"

// requiring returns the release with requirements in METADATA and a similar line in the
// description below.
func requiring(lines ...string) wheeltest.Wheel {
	w := tool()
	w.Swapped = map[string]string{info + "METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n" +
		strings.Join(lines, "\n") + "\n\nVersion: 9\nRequires-Dist: torch\n"}
	return w
}

func TestRepackDropsWhatThePlatformProvides(t *testing.T) {
	tree, _, err := unpacked(t, requiring("Requires-Dist: flash-attn==2.8.3", "Requires-Dist: torch", "Requires-Dist: torchmetrics", "Requires-Dist: Flash_Attn>1; extra == 'x'").Bytes())
	must.Succeed(t, err)
	path, says, err := repacked(t, tree, "--local", "rocm6.1", "--provided", "flash-attn", "--provided", "Torch")
	must.Hold(t, err == nil && strings.Count(says, "dropped ") == 3, "%v: %s", err, says)
	w := must.Get(wheel.Open(path))(t)
	defer w.Close()
	left := w.Metadata.Values("Requires-Dist")
	check.That(t, len(left) == 1 && left[0] == "torchmetrics", "left are %q", left)
	external := w.Metadata.Values("Requires-External")
	check.That(t, len(external) == 3 && external[0] == "flash-attn==2.8.3", "of the platform are %q", external)
	text, err := w.ReadFile(w.DistInfo+"/METADATA", 1000)
	check.That(t, err == nil && strings.HasSuffix(string(text), "\n\nVersion: 9\nRequires-Dist: torch\n"),
		"the description was changed: %q, %v", text, err)
}

func TestRepackRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		release wheeltest.Wheel
		args    []string
		says    string
	}{
		"a missing requirement": {requiring("Requires-Dist: torch"), []string{"--local", "a", "--provided", "vllm"}, "METADATA does not require vllm"},
		"no local version":      {tool(), []string{"--local", "../x"}, "'../x' is no local version"},
		"two versions":          {requiring("Version: 1.0"), []string{"--local", "a"}, "exactly once"},
		"another version":       {wheeltest.Wheel{Name: released, Version: "2.0"}, []string{"--local", "a"}, "exactly once"},
		"no METADATA":           {wheeltest.Wheel{Name: released, Omitted: []string{info + "METADATA"}}, []string{"--local", "a"}, "there is no " + info},
		"a signature":           {wheeltest.Wheel{Name: released, Unlisted: []wheeltest.File{{Name: info + "RECORD.jws"}}}, []string{"--local", "a"}, "it is signed"},
	} {
		tree, says, err := unpacked(t, c.release.Bytes())
		must.Hold(t, err == nil, "%s: %v: %s", name, err, says)
		_, says, err = repacked(t, tree, c.args...)
		check.That(t, err != nil && strings.Contains(says, c.says), "%s: %v: %s", name, err, says)
	}
}

// No file of a hostile wheel is written.
func TestUnpackRefuses(t *testing.T) {
	for name, f := range map[string]wheeltest.File{
		"is no plain path":   {Name: "tool/../../x"},
		"'/x' is no plain":   {Name: "/x"},
		"'a//b' is no plain": {Name: "a//b"},
		"no plain path":      {Name: `a\b`},
		"is no regular file": {Name: "x", Text: "/etc/passwd", Mode: fs.ModeSymlink | 0o777},
		"there twice":        {Name: "tool/run"},
	} {
		w := tool()
		w.Unlisted = []wheeltest.File{f}
		tree, says, err := unpacked(t, w.Bytes())
		check.That(t, err != nil && strings.Contains(says, name), "%s: %v: %s", name, err, says)
		left, err := os.ReadDir(tree)
		check.That(t, err == nil && len(left) == 0, "%s: %v was written, %v", name, left, err)
	}
	damaged := tool().Bytes()
	damaged[50] ^= 0xff
	_, says, err := unpacked(t, damaged)
	check.That(t, err != nil, "a damaged member was unpacked: %s", says)
}
