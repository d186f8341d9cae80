package lock_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// entry returns the entry of the second cell of the tiny recipe.
func entry(t *testing.T) lock.Entry {
	t.Helper()
	entries, err := lock.Assemble(drafts(t), tinyLock(), "0123456789abcdef")
	must.Succeed(t, err)
	return entries[1]
}

func TestDiff(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		change func(*lock.Entry)
		want   []lock.Change
	}{
		"nothing": {func(*lock.Entry) {}, nil},
		"scripts of the pipeline": {
			func(e *lock.Entry) { e.Pipeline = "fedcba9876543210" },
			[]lock.Change{{Step: "image", What: "scripts of the pipeline", Was: "0123456789ab", Is: "fedcba987654"}},
		},
		"Debian packages": {
			func(e *lock.Entry) {
				e.Image.Pin.Packages[0].Name, e.Image.Pin.Packages[0].SHA256 = "apt-utils", sha("f0")
				e.Image.Pin.Packages[1].Version = "4:15"
			},
			[]lock.Change{
				{Step: "image", What: "package apt", Was: "3.0 b00000000000"},
				{Step: "image", What: "package apt-utils", Is: "3.0 f00000000000"},
				{Step: "image", What: "package g++", Was: "4:14~1+b2 b10000000000", Is: "4:15 b10000000000"},
			},
		},
		"requested Debian packages": {
			func(e *lock.Entry) {
				e.Image.Pin.Debian = &image.Debian{Suites: e.Image.Pin.Debian.Suites, Packages: []string{"g++", "cmake"}}
			},
			[]lock.Change{{Step: "image", What: "request for cmake", Is: "requested"}},
		},
		"facts of the image": {
			func(e *lock.Entry) {
				e.Image.Provides = map[string]image.Fact{"rocm": {Is: "6.0", Probe: "echo 5.7"}, "rocm-path": {Is: "/usr", Probe: "cat"}}
			},
			[]lock.Change{
				{Step: "image", What: "fact rocm", Was: "5.7", Is: "6.0"},
				{Step: "image", What: "fact rocm-path", Was: `{"is":"/usr","probe":"echo /usr"}`, Is: `{"is":"/usr","probe":"cat"}`},
			},
		},
		"wheels": {
			func(e *lock.Entry) { e.Image.Wheels[0].Version = "3.1" },
			[]lock.Change{{Step: "packages", What: "wheel cmake", Was: "3.0 d30000000000", Is: "3.1 d30000000000"}},
		},
		"source": {
			func(e *lock.Entry) { e.Source.SHA256 = sha("ff") },
			[]lock.Change{{Step: "source", What: "source tiny", Was: "1.1 a10000000000", Is: "1.1 ff0000000000"}},
		},
		"patches change places": {
			func(e *lock.Entry) { slices.Reverse(e.Patches) },
			[]lock.Change{{Step: "patch", What: "order of the patches", Was: "patch new before patch both", Is: "patch both before patch new"}},
		},
		"a patch is gone": {
			func(e *lock.Entry) { e.Patches = e.Patches[:1] },
			[]lock.Change{{Step: "patch", What: "patch both", Was: digestOf(tinyPatches()[2])}},
		},
		"patches with one name": {
			func(e *lock.Entry) { e.Patches = slices.Repeat(e.Patches[:1], 3) },
			[]lock.Change{
				{Step: "patch", What: "patch both", Was: digestOf(tinyPatches()[2])},
				{Step: "patch", What: "patch new (2)", Is: digestOf(tinyPatches()[1])},
				{Step: "patch", What: "patch new (3)", Is: digestOf(tinyPatches()[1])},
			},
		},
		"variables": {
			func(e *lock.Entry) {
				e.Env = map[string]string{"VERSION": "1.1", "ROOT": "", "LONG": long, "LONGER": long + "x", "NEW": "yes"}
			},
			[]lock.Change{
				{Step: "build", What: "variable LONG", Is: long},
				{Step: "build", What: "variable LONGER", Is: "c675a2e604b0"},
				{Step: "build", What: "variable NEW", Is: "yes"},
				{Step: "build", What: "variable ROOT", Was: "/usr", Is: "empty"},
			},
		},
		"script, date and promises": {
			func(e *lock.Entry) { e.Script, e.Epoch, e.Expect.Needed = "", 1, nil },
			[]lock.Change{
				{Step: "build", What: "SOURCE_DATE_EPOCH", Was: "1709164800", Is: "1"},
				{Step: "build", What: "build script", Was: "d05aa2a15fb3", Is: "empty"},
				{Step: "gates", What: "expectation needed", Was: `["libx.so.1.1"]`},
			},
		},
		"the gates' image": {
			func(e *lock.Entry) {
				e.Runtime.Pin.Digest, e.Runtime.Wheels[0].SHA256 = "sha256:"+sha("ee"), sha("ef")
				e.Image.Pin.Date = "20300101T000000Z"
			},
			[]lock.Change{
				{Step: "gates", What: "date of the package index", Was: date, Is: "20300101T000000Z"},
				{Step: "gates", What: "run-time image: image", Was: "registry c00000000000", Is: "registry ee0000000000"},
				{Step: "gates", What: "run-time image: wheel numpy", Was: "2.0 d00000000000", Is: "2.0 ef0000000000"},
			},
		},
		"everything behind the first": {
			func(e *lock.Entry) { e.Script, e.Source.Version, e.Axes["new"] = "make -j", "1.2", "x" },
			[]lock.Change{
				{Step: "source", What: "source tiny", Was: "1.1 a10000000000", Is: "1.2 a10000000000"},
				{Step: "build", What: "build script", Was: "d05aa2a15fb3", Is: "57e3a136ca3b"},
				{Step: "gates", What: "axis new", Is: "x"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := entry(t)
			c.change(&changed)
			got := lock.Diff(entry(t), changed)
			check.Same(t, "values", c.want, got)
			first := ""
			if len(c.want) > 0 {
				first = c.want[0].Step
			}
			check.Same(t, "runs again from", first, lock.First(got))
		})
	}
}

func digestOf(p patch.Patch) string { return p.Digest()[:12] }

// Every difference that changes the key appears in the diff, in both directions.
func TestDiffSeesEverything(t *testing.T) {
	for n := 1; ; n++ {
		e, left := full(), n
		where := change(reflect.ValueOf(e).Elem(), &left, "Entry")
		if left > 0 {
			break
		}
		if where == "" {
			continue
		}
		there, back := lock.Diff(*full(), *e), lock.Diff(*e, *full())
		check.That(t, len(there) != 0 && len(back) == len(there), "a change of %s is told as %v, and back as %v", where, there, back)
		for _, c := range there {
			check.That(t, slices.Contains(lock.Steps(), c.Step) && c.What != "" && c.Was != c.Is && !strings.HasPrefix(c.What, "form of"),
				"a change of %s is told as %+v", where, c)
		}
	}
}
