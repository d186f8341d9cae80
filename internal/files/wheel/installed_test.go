package wheel

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

const wholeWheel = "tool-1.0-py3-none-any.whl"

// whole returns a wheel with a file for every kind of place.
func whole(t *testing.T) (*Wheel, string) {
	t.Helper()
	path := wheeltest.Wheel{Name: wholeWheel, Files: []wheeltest.File{
		{Name: "tool/__init__.py", Text: "def main(): pass\n"},
		{Name: "tool/native/lib.so", Text: "\x7fELF", Mode: 0o755},
		{Name: "shared/tool.txt", Text: "shared"},
		{Name: "single.py", Text: "x = 1\n"},
		{Name: "tool-1.0.data/scripts/tool-run", Text: "#!python\nprint(1)\n", Mode: 0o755},
		{Name: "tool-1.0.data/scripts/tool-sh", Text: "#!/bin/sh\nexit 0\n", Mode: 0o755},
		{Name: "tool-1.0.data/data/share/tool/notes", Text: "notes"},
		{Name: "tool-1.0.data/headers/tool.h", Text: "int x;\n"},
		{Name: "tool-1.0.dist-info/entry_points.txt", Text: "[console_scripts]\ntool-main = tool:main\n"},
	}}.Write(t)
	w, err := Open(path)
	must.Succeed(t, err)
	t.Cleanup(func() { w.Close() })
	return w, path
}

func writeAt(t *testing.T, path, text string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
}

// byHandInstalled installs the wheel into a prefix like pip.
func byHandInstalled(t *testing.T, w *Wheel) (prefix string, in Installed) {
	t.Helper()
	prefix = t.TempDir()
	site := filepath.Join(prefix, "lib/python3.11/site-packages")
	var record []string
	for _, f := range w.Files {
		text, err := w.ReadFile(f.Name, 1<<20)
		must.Succeed(t, err)
		name := f.Name
		switch scheme, below := w.place(f.Name); scheme {
		case "scripts":
			name = "../../../bin/" + below
			text = []byte(strings.Replace(string(text), "#!python", "#!"+prefix+"/bin/python", 1))
		case "data":
			name = "../../../" + below
		case "headers":
			name = "../../../include/site/python3.11/tool/" + below
		}
		writeAt(t, filepath.Join(site, name), string(text))
		record = append(record, name)
	}
	more := map[string]string{
		"../../../bin/tool-main": "#!/bin/python\n", "tool-1.0.dist-info/INSTALLER": "pip\n", "tool-1.0.dist-info/REQUESTED": "",
		"tool-1.0.dist-info/direct_url.json": "{}", "tool/__pycache__/__init__.cpython-311.pyc": "\x00", "__pycache__/single.cpython-311.pyc": "\x00",
	}
	for name, text := range more {
		writeAt(t, filepath.Join(site, name), text)
		record = append(record, name)
	}
	in = Installed{site: site, others: map[string]bool{"shared/other.txt": true}}
	for _, name := range record {
		in.record = append(in.record, Listed{Path: name})
	}
	writeAt(t, filepath.Join(site, "shared/other.txt"), "of another distribution")
	return prefix, in
}

func TestCompare(t *testing.T) {
	w, _ := whole(t)
	site := "lib/python3.11/site-packages/"
	for name, c := range map[string]struct {
		change func(t *testing.T, prefix string, in *Installed)
		want   string
	}{
		"as installed":   {func(*testing.T, string, *Installed) {}, ""},
		"without RECORD": {func(_ *testing.T, _ string, in *Installed) { in.record = nil }, ""},
		"a changed module": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool/__init__.py"), "def main(): evil()\n")
		},
			`"tool/__init__.py" was changed`},
		"a library of the same size": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool/native/lib.so"), "\x7fELG")
		},
			`"tool/native/lib.so" was changed`},
		"changed METADATA": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool-1.0.dist-info/METADATA"), "Name: tool\n")
		},
			`"tool-1.0.dist-info/METADATA" was changed`},
		"a missing module": {func(_ *testing.T, p string, _ *Installed) { os.Remove(filepath.Join(p, site, "single.py")) }, `"single.py" is missing`},
		"a link to the same bytes": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, "elsewhere"), "x = 1\n")
			os.Remove(filepath.Join(p, site, "single.py"))
			os.Symlink(filepath.Join(p, "elsewhere"), filepath.Join(p, site, "single.py"))
		}, ""},
		"a directory in place of a file": {func(_ *testing.T, p string, _ *Installed) {
			os.Remove(filepath.Join(p, site, "single.py"))
			os.Mkdir(filepath.Join(p, site, "single.py"), 0o755)
		}, `"single.py": `},
		"an added module": {func(t *testing.T, p string, _ *Installed) { writeAt(t, filepath.Join(p, site, "tool/evil.py"), "") }, `"tool/evil.py" is not in the wheel`},
		"an added directory": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool/a/b/evil.so"), "")
		}, `"tool/a/b/evil.so" is not in the wheel`},
		"a file beside those of another distribution": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "shared/evil.py"), "")
		}, `"shared/evil.py" is not in the wheel`},
		"bytecode outside __pycache__": {func(t *testing.T, p string, _ *Installed) { writeAt(t, filepath.Join(p, site, "tool/evil.pyc"), "") }, `"tool/evil.pyc" is not in the wheel`},
		"a library in __pycache__": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool/__pycache__/evil.so"), "")
		}, `"tool/__pycache__/evil.so" is not in the wheel`},
		"a file in .dist-info": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, site, "tool-1.0.dist-info/top_level.txt"), "")
		},
			`"tool-1.0.dist-info/top_level.txt" is not in the wheel`},
		"a line of RECORD": {func(_ *testing.T, _ string, in *Installed) {
			in.record = append(in.record, Listed{Path: "evil.pth"})
		}, `RECORD lists "evil.pth", which the wheel does not have`},
		"a line of RECORD outside": {func(_ *testing.T, _ string, in *Installed) {
			in.record = append(in.record, Listed{Path: "../../../bin/python"})
		},
			`RECORD lists "../../../bin/python", which the wheel does not have`},
		"a changed shell script": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, "bin/tool-sh"), "#!/bin/bash\nexit 0\n")
		}, `"bin/tool-sh" was changed`},
		"a script with a long path": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, "bin/tool-run"), "#!/bin/sh\n'''exec' /very/long/python \"$0\" \"$@\"\n' '''\nprint(1)\n")
		}, ""},
		"changed data": {func(t *testing.T, p string, _ *Installed) {
			writeAt(t, filepath.Join(p, "share/tool/notes"), "other")
		}, `"share/tool/notes" was changed`},
		"a line of RECORD with another digest": {func(_ *testing.T, _ string, in *Installed) {
			in.record = append(in.record, Listed{Path: "tool/../single.py", SHA256: strings.Repeat("0", 64)})
		},
			`RECORD has another digest for "tool/../single.py" than the wheel`},
	} {
		t.Run(name, func(t *testing.T) {
			prefix, in := byHandInstalled(t, w)
			c.change(t, prefix, &in)
			got, err := w.Compare(t.Context(), in)
			must.Succeed(t, err)
			good := len(got.Wrong) == 0 && c.want == "" || len(got.Wrong) == 1 && c.want != "" && strings.HasPrefix(got.Wrong[0], c.want)
			check.That(t, good, "%q, want %q", got.Wrong, c.want)
			check.That(t, c.want != "" || got.Same == len(w.Files)-3 && got.NotCompared >= 3, "%+v of %d files", got, len(w.Files))
		})
	}
}

func TestCompareIsBounded(t *testing.T) {
	w, _ := whole(t)
	_, in := byHandInstalled(t, w)
	for i := range maxWrong + 7 {
		writeAt(t, filepath.Join(in.site, "tool", string(rune('a'+i))+".txt"), "")
	}
	got, err := w.Compare(t.Context(), in)
	check.That(t, err == nil && len(got.Wrong) == maxWrong+1 && slices.Contains(got.Wrong, "and 7 more"), "%q, %v", got.Wrong, err)
}

// pip and uv install the wheel, into an environment and into a directory.
func TestCompareWithInstallers(t *testing.T) {
	if out, err := exec.Command("python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("no pip: %s", out)
	}
	w, path := whole(t)
	venv, target := t.TempDir(), t.TempDir()
	commands := [][]string{
		{"python3", "-m", "venv", "--without-pip", venv},
		{"python3", "-m", "pip", "--python", filepath.Join(venv, "bin/python"), "install", "--quiet", "--no-index", "--no-deps", path},
		{"python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, path},
	}
	if uv, err := exec.LookPath("uv"); err == nil {
		other := t.TempDir()
		commands = append(commands, []string{uv, "venv", "--quiet", other}, []string{uv, "pip", "install", "--offline", "--no-index", "--python", other, path})
		t.Cleanup(func() { compareInstalled(t, w, other) })
	}
	for _, line := range commands {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Env = append(os.Environ(), "PIP_CONFIG_FILE="+os.DevNull, "PIP_ROOT_USER_ACTION=ignore", "PIP_DISABLE_PIP_VERSION_CHECK=1")
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "%q: %v\n%s", line, err, out)
	}
	compareInstalled(t, w, venv)
	compareInstalled(t, w, target)
}

func compareInstalled(t *testing.T, w *Wheel, below string) {
	t.Helper()
	in, err := FindInstalled(below, "tool")
	must.Succeed(t, err)
	got, err := w.Compare(t.Context(), in)
	check.That(t, err == nil && len(got.Wrong) == 0 && got.Same == len(w.Files)-3, "%s: %+v, %v", in.site, got, err)
	writeAt(t, filepath.Join(in.site, "tool/__init__.py"), "evil()\n")
	if got, err := w.Compare(t.Context(), in); err != nil || !slices.Equal(got.Wrong, []string{`"tool/__init__.py" was changed`}) {
		t.Errorf("%s: %+v, %v", in.site, got, err)
	}
}
