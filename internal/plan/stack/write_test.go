package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/files/artifact"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

// house returns a manifest of wheels and the path of each.
func house(t *testing.T, names ...string) (m Manifest, places map[string]string) {
	t.Helper()
	m = Manifest{
		Format: Format, Stack: "stack/pair", Key: "key", Extra: []Wheel{},
		Provided: []recipe.Provided{{Project: "torch", Because: "the site brings it"}},
	}
	places = map[string]string{}
	for i, name := range names {
		path := wheeltest.Wheel{Name: name}.Write(t)
		a, err := artifact.Of(path, "")
		must.Succeed(t, err)
		w := Wheel{Name: name, SHA256: a.SHA256, Size: a.Size}
		places[name] = path
		if i == 0 {
			m.Parts = append(m.Parts, Built{Wheel: w, Recipe: "ray", Cell: "ray-1", Key: "k", Axes: map[string]string{"rocm": "6.1"}})
			continue
		}
		m.Extra = append(m.Extra, w)
	}
	return m, places
}

const (
	ray   = "ray-2.12.0+cudavis.1-cp311-cp311-manylinux2014_x86_64.whl"
	click = "Click_Plus-8.1.7-py3-none-any.whl"
)

func TestWrite(t *testing.T) {
	m, places := house(t, ray, click)
	dir := filepath.Join(t.TempDir(), "stack", "pair")
	made, err := m.Write(dir, places, []byte("A=1\n"))
	must.Succeed(t, err)
	var names []string
	for _, a := range made {
		names = append(names, a.Name)
		have, err := artifact.Of(a.Path, "")
		check.That(t, err == nil && have.SHA256 == a.SHA256 && have.Size == a.Size && a.Key == "key", "%+v, %+v, %v", a, have, err)
	}
	if got, want := strings.Join(names, " "), "manifest.json requirements.txt profile.env wheelhouse/"+click+" wheelhouse/"+ray; got != want {
		t.Errorf("wrote %s, want %s", got, want)
	}
	pins, err := os.ReadFile(filepath.Join(dir, Requirements))
	want := "click-plus==8.1.7 --hash=sha256:" + m.Extra[0].SHA256 + "\nray==2.12.0+cudavis.1 --hash=sha256:" + m.Parts[0].SHA256 + "\n"
	check.That(t, err == nil && string(pins) == want, "%v\n%s\nwant\n%s", err, pins, want)
	read, err := Open(dir)
	check.That(t, err == nil && read.Parts[0].Cell == "ray-1" && read.Parts[0].Axes["rocm"] == "6.1" && read.Provided[0].Because != "",
		"%+v, %v", read, err)
}

// A second Write has the same result and removes the wheels of an older stack.
func TestWriteAgain(t *testing.T) {
	m, places := house(t, ray, click)
	dir := t.TempDir()
	first, err := m.Write(dir, places, nil)
	must.Succeed(t, err)
	old := filepath.Join(dir, Folder, "old-1-py3-none-any.whl")
	for _, path := range []string{old, filepath.Join(dir, profileFile)} {
		must.Succeed(t, os.WriteFile(path, nil, 0o600))
	}
	second, err := m.Write(dir, places, nil)
	must.Hold(t, err == nil && len(first) == len(second), "%v, %v", second, err)
	for i := range first {
		check.That(t, first[i] == second[i], "%+v became %+v", first[i], second[i])
	}
	_, err = os.Stat(old)
	check.That(t, os.IsNotExist(err), "an old wheel is left: %v", err)
	entries, err := os.ReadDir(dir)
	check.That(t, err == nil && len(entries) == 3, "%v, %v", entries, err)
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		wheels []string
		change func(m *Manifest, places map[string]string)
		want   string
	}{
		"two wheels of a project":   {[]string{ray, "Ray-2.10.0-py3-none-any.whl"}, nil, "ray comes from " + ray + " and from Ray-2.10.0-py3-none-any.whl"},
		"a project of the platform": {[]string{ray, "torch-2.5.1-py3-none-any.whl"}, nil, "torch comes from the platform (the site brings it)"},
		"a part other than a wheel": {[]string{ray}, func(m *Manifest, _ map[string]string) { m.Parts[0].Name = "tree.tar.gz" }, `parsing wheel name "tree.tar.gz"`},
		"other bytes":               {[]string{ray, click}, func(_ *Manifest, p map[string]string) { p[ray] = p[click] }, ray + ": expected sha256"},
		"no file":                   {[]string{ray}, func(_ *Manifest, p map[string]string) { p[ray] = "/nowhere" }, "no such file"},
	} {
		m, places := house(t, c.wheels...)
		if c.change != nil {
			c.change(&m, places)
		}
		dir := t.TempDir()
		_, err := m.Write(dir, places, nil)
		check.Fails(t, err, c.want, name)
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: it left %v", name, left)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(text string) string
		want   string
	}{
		"a way out":      {func(s string) string { return strings.Replace(s, click, "../"+click, 1) }, "want distribution-version"},
		"another digest": {func(s string) string { return strings.Replace(s, `"sha256": "`, `"sha256": "0`, 1) }, ": expected sha256 0"},
		"no such wheel":  {func(s string) string { return strings.Replace(s, click, "x-1-py3-none-any.whl", 1) }, "x-1-py3-none-any.whl: no such file"},
		"another format": {func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) }, "has format 2"},
		"no JSON":        {func(string) string { return "{" }, "reading manifest.json"},
	} {
		m, places := house(t, ray, click)
		dir := t.TempDir()
		made, err := m.Write(dir, places, nil)
		must.Succeed(t, err)
		text, err := os.ReadFile(made[0].Path)
		must.Succeed(t, err)
		must.Succeed(t, os.WriteFile(made[0].Path, []byte(c.change(string(text))), 0o600))
		_, err = Open(dir)
		check.Fails(t, err, c.want, name)
	}
}
