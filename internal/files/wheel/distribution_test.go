package wheel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestFindInstalled(t *testing.T) {
	venv := t.TempDir()
	site := filepath.Join(venv, "lib/python3.12/site-packages")
	for name, text := range map[string]string{
		// The name of the directory is that of the installer, the name of the project is in METADATA.
		"x-1.0.dist-info/METADATA":     "Metadata-Version: 2.1\nName: Some-Tool\nVersion: 1.0\n",
		"x-1.0.dist-info/WHEEL":        "Wheel-Version: 1.0\nTag: py3-none-any\nTag: cp311-abi3-any\n",
		"x-1.0.dist-info/RECORD":       "tool/a.py,,\n",
		"other-2.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: other\nVersion: 2.0\n",
		"other-2.0.dist-info/RECORD":   "tool/b.py,,\n",
		"left-1.0.dist-info/x":         "",
	} {
		writeAt(t, filepath.Join(site, name), text)
	}
	writeAt(t, filepath.Join(venv, "pyvenv.cfg"), "home = /usr/bin\n")
	writeAt(t, filepath.Join(venv, "bin/python"), "")
	must.Succeed(t, os.Symlink("lib", filepath.Join(venv, "lib64")))
	for _, path := range []string{venv, site, filepath.Join(venv, "bin/python")} {
		in, err := FindInstalled(path, "some.tool")
		if err != nil || in.Project != "some-tool" || in.Version != "1.0" || in.site != site || filepath.Base(in.Info) != "x-1.0.dist-info" ||
			!slices.Equal(in.Tags, []string{"cp311-abi3-any", "py3-none-any"}) || len(in.record) == 0 || !in.others["tool/b.py"] || in.others["tool/a.py"] {
			t.Errorf("%s: %+v, %v", path, in, err)
		}
	}
	in, err := FindInstalled(venv, "other")
	check.That(t, err == nil && in.Tags == nil, "without WHEEL: %+v, %v", in, err)
	if _, err := FindInstalled(venv, "toool"); diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), `has no distribution "toool"`) {
		t.Errorf("%v", err)
	}
	for path, want := range map[string]string{filepath.Join(venv, "nowhere"): "no such file", filepath.Join(venv, "bin"): "no packages found"} {
		_, err := FindInstalled(path, "other")
		check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), want), "%s: %v", path, err)
	}
	writeAt(t, filepath.Join(site, "other-3.0.dist-info/METADATA"), "Metadata-Version: 2.1\nName: Other\nVersion: 3.0\n")
	if _, err := FindInstalled(venv, "other"); diag.CodeOf(err) != diag.Gate || !strings.Contains(err.Error(), "other-3.0.dist-info: Python finds either") {
		t.Errorf("%v", err)
	}
	writeAt(t, filepath.Join(site, "x-1.0.dist-info/RECORD"), "a,b\n")
	if _, err := FindInstalled(venv, "some-tool"); diag.CodeOf(err) != diag.Gate || !strings.Contains(err.Error(), "RECORD line 1 has 2 fields") {
		t.Errorf("%v", err)
	}
}
