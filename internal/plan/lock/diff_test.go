package lock_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"builder/internal/plan/image"
	"builder/internal/plan/lock"
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
			func(e *lock.Entry) { e.Pipeline = sha("ff") },
			[]lock.Change{{Step: "image", What: "pipeline", Was: "0123456789abcdef", Is: "ff0000000000"}},
		},
		"Debian packages": {
			func(e *lock.Entry) {
				e.Image.Pin.Packages[0].Name, e.Image.Pin.Packages[0].SHA256 = "apt-utils", sha("f0")
				e.Image.Pin.Packages[1].Version = "4:15"
				e.Image.Pin.Debian = &image.Debian{Suites: e.Image.Pin.Debian.Suites, Packages: []string{"g++", "cmake"}}
			},
			[]lock.Change{
				{Step: "image", What: "image.pin.debian.packages.cmake", Is: "cmake"},
				{Step: "image", What: "image.pin.packages.apt", Was: "3.0 b00000000000"},
				{Step: "image", What: "image.pin.packages.apt-utils", Is: "3.0 f00000000000"},
				{Step: "image", What: "image.pin.packages.g++", Was: "4:14~1+b2 b10000000000", Is: "4:15 b10000000000"},
			},
		},
		"facts and wheels of the image": {
			func(e *lock.Entry) {
				e.Image.Provides = map[string]image.Fact{"rocm": {Is: "6.0", Probe: "echo 5.7"}, "rocm-path": {Is: "/usr", Probe: "cat"}}
				e.Image.Wheels[0].Size = 8
			},
			[]lock.Change{
				{Step: "image", What: "image.provides.rocm-path.probe", Was: "echo /usr", Is: "cat"},
				{Step: "image", What: "image.provides.rocm.is", Was: "5.7", Is: "6.0"},
				{
					Step: "packages", What: "image.wheels.cmake",
					Was: `{"filename":"cmake-3.0.tar.gz","project":"cmake","sha256":"` + sha("d3") + `","size":7,"version":"3.0"}`,
					Is:  `{"filename":"cmake-3.0.tar.gz","project":"cmake","sha256":"` + sha("d3") + `","size":8,"version":"3.0"}`,
				},
			},
		},
		"patches change places": {
			func(e *lock.Entry) { slices.Reverse(e.Patches) },
			[]lock.Change{{Step: "patch", What: "order of patches", Was: "new, both", Is: "both, new"}},
		},
		"patches with one name": {
			func(e *lock.Entry) { e.Patches = slices.Repeat(e.Patches[:1], 2) },
			[]lock.Change{
				{Step: "patch", What: "patches.both", Was: "b86f4be2b05b"},
				{Step: "patch", What: "patches.new (2)", Is: "0ddaadee4a92"},
			},
		},
		"variables": {
			func(e *lock.Entry) {
				e.Env = map[string]string{"VERSION": "1.1", "ROOT": "", "LONG": long, "LONGER": long + "x", "NEW": "yes"}
			},
			[]lock.Change{
				{Step: "build", What: "env.LONG", Is: long},
				{Step: "build", What: "env.LONGER", Is: "c675a2e604b0"},
				{Step: "build", What: "env.NEW", Is: "yes"},
				{Step: "build", What: "env.ROOT", Was: "/usr", Is: "empty"},
			},
		},
		"everything behind the first": {
			func(e *lock.Entry) {
				e.Source.Version, e.Script, e.Epoch, e.Axes["new"] = "1.2", "", 1, "x"
				e.Runtime.Pin.Digest, e.Image.Pin.Date = "sha256:"+sha("ee"), "20300101T000000Z"
			},
			[]lock.Change{
				{Step: "source", What: "source", Was: "1.1 a10000000000", Is: "1.2 a10000000000"},
				{Step: "build", What: "epoch", Was: "1709164800", Is: "1"},
				{Step: "build", What: "script", Was: "make", Is: "empty"},
				{Step: "gates", What: "axes.new", Is: "x"},
				{Step: "gates", What: "image.pin.date", Was: date, Is: "20300101T000000Z"},
				{Step: "gates", What: "runtime.pin.digest", Was: "c00000000000", Is: "ee0000000000"},
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
