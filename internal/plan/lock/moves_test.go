package lock_test

import (
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// A later resolution with the same packages moves nothing.
func TestMovedKeepsTheDate(t *testing.T) {
	later := tinyLock()
	later.Images[0].Date = "20300101T000000Z"
	if moved := tinyLock().Moved(later); !moved.None() {
		t.Errorf("%s moved", moved)
	}
	check.Same(t, "the date", date, tinyLock().With(tinyLock().Moved(later)).Images[0].Date)
	check.That(t, later.Images[0].Date != date, "the input changed")

	// A changed request with the same packages does not change the date either.
	later.Images[0].Debian = &image.Debian{Suites: later.Images[0].Debian.Suites, Packages: []string{"g++", "apt"}}
	moved := tinyLock().Moved(later)
	check.That(t, moved.String() == "image debian" && moved.Images[0].Date == date, "%s moved, dated %s", moved, moved.Images[0].Date)

	// Another image with the same packages has its own date.
	twin := later.Images[0]
	twin.Name = "twin"
	check.Same(t, "the date of what moved", twin.Date, tinyLock().Moved(lock.File{Images: []lock.ImagePin{twin}}).Images[0].Date)

	// A changed package changes the date.
	later.Images[0].Packages = append([]deb.Package{}, later.Images[0].Packages...)
	later.Images[0].Packages[1].Version = "4:15"
	moved = tinyLock().Moved(later)
	check.That(t, moved.String() == "image debian" && moved.Images[0].Date == "20300101T000000Z",
		"%s moved, dated %s", moved, moved.Images[0].Date)
}

func TestMoved(t *testing.T) {
	moved := tinyLock().Moved(tinyLock())
	check.That(t, moved.None() && moved.String() == "", "%s moved", moved)
	other := tinyLock()
	other.Sources[1].SHA256 = sha("a2")
	other.Images[1].Digest = "sha256:" + sha("c1")
	other.Python[2].Files[0].Version = "3.1"
	const want = "source tiny 1.1; image registry; Python 3.12 with cmake numpy==1.1 wheel"
	moved = tinyLock().Moved(other)
	check.That(t, moved.String() == want && moved.Recipe == "tiny", "%s moved, want %s", moved, want)
	moved = (lock.File{}).Moved(tinyLock())
	check.That(t, len(moved.Sources) == 2 && len(moved.Images) == 2 && len(moved.Python) == 4, "nothing to compare with: %s moved", moved)
}

func TestUnneeded(t *testing.T) {
	left := tinyLock().Unneeded(drafts(t))
	check.That(t, left.None(), "no cell needs %s", left)
	const want = "source tiny 1.1; Python 3.12 with cmake numpy==1.1 wheel; Python 3.12 with numpy"
	check.Same(t, "the first cell does not need", want, tinyLock().Unneeded(drafts(t)[:1]).String())
	left = tinyLock().Unneeded(nil)
	check.That(t, len(left.Sources)+len(left.Images)+len(left.Python) == 8, "without cells nothing is needed, and %s is", left)
	// A source or image pinned by its own digest needs no pin.
	d := drafts(t)[0]
	d.Runtime.Digest = "sha256:" + sha("ee")
	d.Source.Kind = recipe.Archive
	f := tinyLock()
	f.Sources, f.Python = f.Sources[:1], f.Python[:2]
	check.Same(t, "what no cell needs", "source tiny 1.0; image registry", f.Unneeded([]lock.Draft{d}).String())
	// A pin without packages is null in the file, and its need is an empty list.
	bare := drafts(t)[0]
	bare.Settings.Requires.Run = nil
	f = lock.File{Python: []lock.PythonPin{{Python: bare.Vars["python"]}}}
	left = f.Unneeded([]lock.Draft{bare})
	check.That(t, left.None(), "a cell without packages does not need %s", left)
	// A pin of a request that has changed since.
	f = tinyLock()
	f.Images[0].Debian = &image.Debian{Packages: []string{"other"}}
	check.Same(t, "what no cell needs", "image debian", f.Unneeded(drafts(t)).String())
	rest := f.Without(f.Unneeded(drafts(t)))
	check.That(t, len(rest.Images) == 1 && len(rest.Sources) == 2 && len(rest.Python) == 4, "what is left is %s", rest)
}

func TestHolding(t *testing.T) {
	for names, want := range map[string]string{
		"":              "",
		"tiny":          "source tiny 1.0; source tiny 1.1",
		"registry":      "image registry",
		"g++":           "image debian",
		"debian":        "image debian",
		"cmake":         "Python 3.12 with cmake numpy==1.1 wheel",
		"Wheel":         "Python 3.11 with numpy==1.0 wheel; Python 3.12 with cmake numpy==1.1 wheel",
		"apt,cmake,g++": "image debian; Python 3.12 with cmake numpy==1.1 wheel",
	} {
		asked := strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
		got, err := tinyLock().Holding(asked, drafts(t))
		check.That(t, err == nil && got.String() == want, "%s is held by %q, want %q: %v", names, got, want, err)
	}
}

// A need without a pin matches only its own name.
func TestHoldingWithoutPins(t *testing.T) {
	got, err := (lock.File{}).Holding([]string{"debian", "tiny"}, drafts(t))
	check.That(t, err == nil && got.String() == "source tiny 1.0; source tiny 1.1; image debian", "got %q, %v", got, err)
	_, err = (lock.File{}).Holding([]string{"g++"}, drafts(t))
	check.That(t, diag.CodeOf(err) == diag.Usage, "class %v: %v", diag.CodeOf(err), err)
}

func TestHoldingRefuses(t *testing.T) {
	const other = "name a source, an image, one of its packages or a Python package; choose other cells by their axes or --all; what a recipe pins by digest is in no lock"
	for name, hint := range map[string]string{"nunpi": `did you mean "numpy"?`, "cmake": other} {
		got, err := tinyLock().Holding([]string{name}, drafts(t)[:1])
		errs := diag.All(err)
		check.That(t, got.None() && len(errs) == 1 && errs[0].Error() == `no chosen cell needs a pin of "`+name+`"` && errs[0].Hint == hint && errs[0].Code == diag.Usage,
			"%s: %q, %+v", name, got, errs)
	}
	// All errors are reported together.
	_, err := tinyLock().Holding([]string{"one", "numpy", "two"}, drafts(t))
	check.That(t, len(diag.All(err)) == 2, "got %v", err)
}

func TestAnd(t *testing.T) {
	all, some := lock.File{}.Missing(drafts(t)), lock.File{}.Missing(drafts(t)[:1])
	for _, got := range []lock.Missing{all.And(some), some.And(all), all.And(all)} {
		check.That(t, len(got.Sources) == 2 && len(got.Images) == 2 && len(got.Python) == 4, "got %s, want %s", got, all)
	}
}

func TestCompare(t *testing.T) {
	f, g := tinyLock(), tinyLock()
	changes := lock.Compare(f, g)
	check.That(t, changes != nil && len(changes) == 0, "the same differs: %#v", changes)
	g.Sources = g.Sources[:1]
	g.Images[0].Date = "20300101T000000Z"
	g.Images[0].Packages[1].Version = "4:15"
	g.Images[1].Digest = "sha256:" + sha("c1")
	g.Python[1].Files[1] = pin("wheel", "0.46", "d9")
	g.Python[2].Files[2] = pin("wheel", "0.46", "d9")
	g.Python[3].Files = append(g.Python[3].Files, pin("new", "1", "ab"))
	want := []lock.PinChange{
		{Kind: "image", Name: "debian", Was: date, Is: "20300101T000000Z"},
		{Kind: "image", Name: "registry", Was: "c00000000000", Is: "c10000000000"},
		{Kind: "package", Name: "g++ (debian)", Was: "4:14~1+b2 b10000000000", Is: "4:15 b10000000000"},
		{Kind: "source", Name: "tiny 1.1", Was: "1.1 a10000000000"},
		{Kind: "wheel", Name: "new (Python 3.12)", Is: "1 ab0000000000"},
		{Kind: "wheel", Name: "wheel (Python 3.11)", Was: "0.45 d20000000000", Is: "0.46 d90000000000"},
		{Kind: "wheel", Name: "wheel (Python 3.12)", Was: "0.45 d20000000000", Is: "0.46 d90000000000"},
	}
	check.Same(t, "values", want, lock.Compare(f, g))
}

// Different releases of a source are separate changes, and so are sets with different
// pins of a wheel. A change common to several sets is listed once.
func TestCompareTellsApart(t *testing.T) {
	f, g := tinyLock(), tinyLock()
	g.Sources[0].SHA256, g.Sources[1].SHA256 = sha("e0"), sha("e1")
	g.Python[0].Files[0] = pin("numpy", "2.1", "e2") // Python 3.11 with numpy
	g.Python[1].Files[0] = pin("numpy", "1.2", "e3") // Python 3.11 with numpy==1.0
	want := []lock.PinChange{
		{Kind: "source", Name: "tiny 1.0", Was: "1.0 a00000000000", Is: "1.0 e00000000000"},
		{Kind: "source", Name: "tiny 1.1", Was: "1.1 a10000000000", Is: "1.1 e10000000000"},
		{Kind: "wheel", Name: "numpy (Python 3.11)", Was: "1.0 d10000000000", Is: "1.2 e30000000000"},
		{Kind: "wheel", Name: "numpy (Python 3.11)", Was: "2.0 d00000000000", Is: "2.1 e20000000000"},
	}
	check.Same(t, "values", want, lock.Compare(f, g))
	added := lock.PythonPin{Python: "3.11", Requirements: []string{"wheel"}, Files: g.Python[1].Files[1:]}
	g, again := tinyLock(), added
	again.Requirements = []string{"wheel<1"}
	g.Python = append(g.Python, added, again)
	got := lock.Compare(tinyLock(), g)
	check.That(t, len(got) == 1 && got[0].Was == "", "got %+v", got)
}
