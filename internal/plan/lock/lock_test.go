package lock_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestMissing(t *testing.T) {
	if m := tinyLock().Missing(drafts(t)); !m.None() || m.String() != "" {
		t.Errorf("the lock lacks %s", m)
	}
	m := lock.File{}.Missing(drafts(t))
	const all = "source tiny 1.0; source tiny 1.1; image debian; image registry; " +
		"Python 3.11 with numpy==1.0 wheel; Python 3.11 with numpy; Python 3.12 with cmake numpy==1.1 wheel; Python 3.12 with numpy"
	check.That(t, !m.None() && m.String() == all, "an empty lock lacks %s", m)
	none := (lock.File{}).Missing(nil)
	check.That(t, none.None(), "without cells it lacks %s", none)
}

// A pin satisfies only the need for which it was made.
func TestMissingSeesAChangedQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lock.File)
		want   string
	}{
		"source":            {func(f *lock.File) { f.Sources[0].Version = "0.9" }, "source tiny 1.0"},
		"project":           {func(f *lock.File) { f.Sources[0].Project = "other" }, "source tiny 1.0"},
		"reference":         {func(f *lock.File) { f.Images[1].Registry = "registry.example/base:2" }, "image registry"},
		"image":             {func(f *lock.File) { f.Images[1].Name = "other" }, "image registry"},
		"another kind":      {func(f *lock.File) { f.Images[0].Debian, f.Images[0].Registry = nil, "x/y:1" }, "image debian"},
		"package":           {func(f *lock.File) { f.Images[0].Debian.Packages = []string{"g++", "cmake"} }, "image debian"},
		"suite":             {func(f *lock.File) { f.Images[0].Debian.Suites[0].Priority = 100 }, "image debian"},
		"no requirement":    {func(f *lock.File) { f.Python[0].Requirements = nil }, "Python 3.11 with numpy"},
		"other requirement": {func(f *lock.File) { f.Python[2].Requirements[0] = "cmake<4" }, "Python 3.12 with cmake numpy==1.1 wheel"},
		"python":            {func(f *lock.File) { f.Python[0].Python = "3.10" }, "Python 3.11 with numpy"},
	} {
		f := tinyLock()
		c.change(&f)
		check.Same(t, fmt.Sprintf("%s: the lock lacks", name), c.want, f.Missing(drafts(t)).String())
	}
}

// A digest in the recipe also applies to the pin of the source.
func TestMissingSeesAnotherDigest(t *testing.T) {
	f := tinyLock()
	f.Sources[0].Commit = sha("c0")[:40]
	for name, c := range map[string]struct{ sha256, commit, want string }{
		"nothing":        {"", "", ""},
		"both":           {sha("a0"), f.Sources[0].Commit, ""},
		"another sha256": {sha("a1"), "", "source tiny 1.0"},
		"another commit": {"", sha("c1")[:40], "source tiny 1.0"},
	} {
		d := drafts(t)[0]
		d.Source.SHA256, d.Source.Commit = c.sha256, c.commit
		check.Same(t, fmt.Sprintf("%s: the lock lacks", name), c.want, f.Missing([]lock.Draft{d}).String())
	}
}

// An image with a digest needs no pin, and no pin overrides the digest.
func TestImageByDigestNeedsNoPin(t *testing.T) {
	d := drafts(t)[0]
	d.Runtime.Digest = "sha256:" + sha("ee")
	f := tinyLock()
	for _, f := range []lock.File{f, {Recipe: "tiny", Sources: f.Sources, Images: f.Images[:1], Python: f.Python}} {
		entries := must.Get(lock.Assemble([]lock.Draft{d}, f, "p"))(t)
		want := lock.ImagePin{Name: "registry", Registry: "registry.example/base:1", Digest: "sha256:" + sha("ee")}
		check.Same(t, "pin", want, entries[0].Runtime.Pin)
	}
}

func TestAssemble(t *testing.T) {
	entries := must.Get(lock.Assemble(drafts(t), tinyLock(), "pipeline"))(t)
	must.Hold(t, len(entries) == 2 && entries[0].ID == "tiny-1.0-cp311" && entries[1].ID == "tiny-1.1-cp312",
		"got %d entries: %+v", len(entries), entries)
	d, f := drafts(t)[1], tinyLock()
	img := tinyImages()
	want := lock.Entry{
		Schema: 2, Pipeline: "pipeline", Recipe: "tiny", ID: "tiny-1.1-cp312",
		Axes: map[string]string{"version": "1.1", "python": "3.12"}, Facts: d.Vars,
		Source: source(pin("tiny", "1.1", "a1")), Homepage: "https://example.com/tiny", Patches: d.Chosen(),
		Image:   lock.Image{Pin: f.Images[0], Setup: "true\n", Env: img[0].Env, Python: img[0].Python, Wheels: f.Python[2].Files, Provides: img[0].Provides},
		Runtime: lock.Image{Pin: f.Images[1], Env: img[1].Env, Python: img[1].Python, Wheels: f.Python[3].Files, Provides: img[1].Provides},
		Env:     map[string]string{"VERSION": "1.1", "ROOT": "/usr"}, Script: "make", Epoch: 1709164800, Expect: d.Settings.Expect,
	}
	check.Same(t, "entry", want, entries[1])
}

// Pins of the home's lock override those of the embedded lock.
func TestWith(t *testing.T) {
	built, own := tinyLock(), lock.File{Schema: 1, Recipe: "ignored"}
	own.Sources = []lock.SourcePin{source(pin("tiny", "1.1", "aaaa")), source(pin("extra", "1", "e0"))}
	own.Images = []lock.ImagePin{{Name: "registry", Registry: "registry.example/base:2", Digest: "sha256:" + sha("cccc")}}
	own.Python = []lock.PythonPin{{Python: "3.11", Requirements: []string{"numpy"}, Files: []pypi.File{pin("numpy", "3.0", "dddd")}}}
	got := built.With(own)

	want := tinyLock()
	want.Sources = []lock.SourcePin{own.Sources[1], want.Sources[0], own.Sources[0]}
	want.Images[1] = own.Images[0]
	want.Python[0] = own.Python[0]
	check.Same(t, "merged", want, got)
	check.Same(t, "the lower lock changed", tinyLock(), built)
	check.Same(t, "nothing laid over it", tinyLock(), tinyLock().With(lock.File{}))
	check.Same(t, "laid over nothing", tinyLock(), lock.File{Recipe: "tiny"}.With(tinyLock()))
	check.Same(t, "twice is not once", got, got.With(own))
	if got.Sources[0].Project = "changed"; own.Sources[1].Project != "extra" {
		t.Error("the upper lock changes with the merged one")
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tiny.lock.json")
	if wrote, err := lock.Write(path, tinyLock()); err != nil || !wrote {
		t.Fatalf("got %v, %v", wrote, err)
	}
	info, err := os.Stat(path)
	must.Hold(t, err == nil && info.Mode().Perm() == 0o644, "got %v, %v", info.Mode(), err)
	wrote, err := lock.Write(path, tinyLock())
	check.That(t, err == nil && !wrote, "the same again: %v, %v", wrote, err)
	same, _ := os.Stat(path)
	check.That(t, os.SameFile(info, same), "the file was replaced by itself")
	f := tinyLock()
	f.Sources = f.Sources[1:]
	wrote, err = lock.Write(path, f)
	check.That(t, err == nil && wrote, "another: %v, %v", wrote, err)
	data, _ := os.ReadFile(path)
	check.That(t, string(data) == string(f.Encode()), "got %s", data)
	left, _ := os.ReadDir(dir)
	check.That(t, len(left) == 1, "left behind: %v", left)
}

// position is the type of a place in a file. Messages name it, and no result depends on
// it.
var position = reflect.TypeFor[diag.Pos]()

// full returns an entry with a value in every field except positions.
func full() *lock.Entry {
	e, n := &lock.Entry{}, 0
	fill(reflect.ValueOf(e).Elem(), &n)
	return e
}

func fill(v reflect.Value, n *int) {
	*n++
	if v.Type() == position {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", "b"} {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, n)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Interface: // settings of gates, whose maps have sorted keys in JSON
		v.Set(reflect.ValueOf(fmt.Sprint("text ", *n)))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("an entry holds a " + v.Kind().String() + ", whose JSON may not be canonical")
	}
}

// change changes the n-th element of a value and returns its path, or "" for a struct.
func change(v reflect.Value, n *int, at string) string {
	*n--
	here := *n == 0
	if v.Type() == position {
		return ""
	}
	switch v.Kind() {
	case reflect.Pointer:
		if here {
			v.SetZero()
			return at
		}
		return change(v.Elem(), n, at)
	case reflect.Struct:
		for i := range v.NumField() {
			if where := change(v.Field(i), n, at+"."+v.Type().Field(i).Name); where != "" {
				return where
			}
		}
		return ""
	case reflect.Slice:
		if here { // the order matters
			reflect.Swapper(v.Interface())(0, 1)
			return at
		}
		return cmp.Or(change(v.Index(0), n, at+"[0]"), change(v.Index(1), n, at+"[1]"))
	case reflect.Map:
		key := reflect.ValueOf("a")
		if here {
			v.SetMapIndex(reflect.ValueOf("c"), v.MapIndex(key))
			return at
		}
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		where := change(value, n, at+"[a]")
		v.SetMapIndex(key, value)
		return where
	case reflect.String:
		if here {
			v.SetString(v.String() + " changed")
		}
	case reflect.Interface:
		if here {
			v.Set(reflect.ValueOf("changed"))
		}
	case reflect.Int, reflect.Int64:
		if here {
			v.SetInt(v.Int() + 1)
		}
	case reflect.Bool:
		if here {
			v.SetBool(false)
		}
	}
	if here {
		return at
	}
	return ""
}

func TestKeyDependsOnEverything(t *testing.T) {
	seen := map[string]string{full().Key(): "nothing"}
	changed := 0
	for n := 1; ; n++ {
		e, left := full(), n
		where := change(reflect.ValueOf(e).Elem(), &left, "Entry")
		if left > 0 {
			break
		}
		if where == "" {
			continue // a struct has no value apart from its fields
		}
		changed++
		key := e.Key()
		other, ok := seen[key]
		check.That(t, !ok, "a change of %s is as one of %s", where, other)
		seen[key] = where
	}
	check.That(t, changed >= 100, "only %d things of an entry were changed", changed)
}

func TestKeyDependsOnNothingElse(t *testing.T) {
	first := must.Get(lock.Assemble(drafts(t), tinyLock(), "p"))(t)
	key := first[0].Key()
	check.That(t, regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(key) && key != first[1].Key(), "keys %s and %s", key, first[1].Key())
	same := func(what string, ds []lock.Draft, f lock.File) {
		t.Helper()
		again, err := lock.Assemble(ds, f, "p")
		must.Hold(t, err == nil, "%s: %v", what, err)
		check.That(t, again[0].Key() == key, "%s changes the key", what)
	}
	for range 5 { // the iteration order of maps differs each time
		same("nothing", drafts(t), tinyLock())
	}
	read := must.Get(lock.Decode("l", tinyLock().Encode()))(t)
	same("writing and reading", drafts(t), read)
	more := tinyLock()
	more.Sources = append(more.Sources, source(pin("tiny", "9", "f0")))
	more.Python = append(more.Python, lock.PythonPin{Python: "3.14", Requirements: []string{"x"}, Files: []pypi.File{pin("x", "1", "f1")}})
	more.Images = append(more.Images, lock.ImagePin{Name: "other", Registry: "x/y:1", Digest: "sha256:" + sha("f2")})
	slices.Reverse(more.Sources)
	slices.Reverse(more.Python)
	same("a pin for another cell", drafts(t), more)
	same("another cell", drafts(t)[:1], tinyLock())
	same("the recipe's summary", drafts(t, "a tiny recipe", "a small recipe", "about: release", "about: the release"), tinyLock())
	same("another value of an axis", drafts(t, `values: ["3.11", "3.12"]`, `values: ["3.11", "3.12", "3.13"]`), tinyLock())
	same("the order of requirements", drafts(t, `[wheel, "numpy=={{version}}", wheel]`, `["numpy=={{version}}", wheel]`), tinyLock())
}

// A change of an entry's JSON changes the key of every earlier build and requires a new
// Schema.
func TestKeyIsStable(t *testing.T) {
	e := lock.Entry{
		Schema: 1, Recipe: "r", Axes: map[string]string{"b": "<2", "a": "1"}, Source: source(pin("p", "1", "a0")),
		Image: lock.Image{Pin: lock.ImagePin{
			Name: "i", Debian: &image.Debian{Packages: []string{"x"}}, Packages: []deb.Package{{Name: "x", Bootstrap: true}},
		}},
	}
	data := must.Get(json.MarshalIndent(e, "", " "))(t)
	const want = "ae9c31f2623745378fd2eeed087ebce0a1e29890d4bada969d18e99c0f8584da"
	check.Same(t, fmt.Sprintf("the key of %s", data), want, e.Key())
}
