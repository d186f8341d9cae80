package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/base/diag"
)

func TestFind(t *testing.T) {
	w := &world{dists: []*installed{
		{name: "Some-Tool", version: "1.0", files: map[string]string{"tool/a.py": "a", "some_tool-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\nTag: cp311-abi3-any\n"}},
		{name: "other", version: "2.0", files: map[string]string{"tool/b.py": "b"}},
	}}
	site := w.write(t).Site[0]
	venv := filepath.Dir(filepath.Dir(filepath.Dir(site)))
	find := func(name string) (Installed, error) { return Find(venv, name) }
	// The name of the directory is that of the installer, the name of the project is in METADATA.
	if err := os.Rename(filepath.Join(site, "Some_Tool-1.0.dist-info"), filepath.Join(site, "x-1.0.dist-info")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(site, "some_tool-1.0.dist-info", "WHEEL"), filepath.Join(site, "x-1.0.dist-info", "WHEEL")); err != nil {
		t.Fatal(err)
	}
	in, err := find("some.tool")
	if err != nil || in.Project != "some-tool" || in.Version != "1.0" || in.Site != site || filepath.Base(in.Info) != "x-1.0.dist-info" ||
		!slices.Equal(in.Tags, []string{"cp311-abi3-any", "py3-none-any"}) || len(in.Record) == 0 || !in.Others["tool/b.py"] || in.Others["tool/a.py"] {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := find("toool"); diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), `has no distribution "toool"`) {
		t.Errorf("%v", err)
	}
	if _, err := Find(filepath.Join(venv, "nowhere"), "other"); diag.CodeOf(err) != diag.Usage {
		t.Errorf("%v", err)
	}
	if in, err := find("other"); err != nil || in.Tags != nil {
		t.Errorf("without WHEEL: %+v, %v", in, err)
	}
	put(t, site, map[string]string{"other-3.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: Other\nVersion: 3.0\n"})
	if _, err := find("other"); diag.CodeOf(err) != diag.Gate || !strings.Contains(err.Error(), "has other-2.0.dist-info and other-3.0.dist-info: Python finds either") {
		t.Errorf("%v", err)
	}
	put(t, site, map[string]string{"x-1.0.dist-info/RECORD": "a,b\n"})
	if _, err := find("some-tool"); diag.CodeOf(err) != diag.Gate || !strings.Contains(err.Error(), "RECORD line 1 has 2 fields") {
		t.Errorf("%v", err)
	}
}
