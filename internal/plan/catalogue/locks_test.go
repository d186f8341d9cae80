package catalogue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/gates/gate"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// tinySite returns the locks of a site with the recipe tiny.
func tinySite(t *testing.T) Locks {
	t.Helper()
	return Catalogue{Site: t.TempDir(), bring: map[string]string{"recipe tiny": "of the site"}}.Locks("")
}

// release pins one release of tiny.
func release(n int) lock.File {
	return lock.File{Schema: lock.Schema, Recipe: "tiny", Sources: []lock.SourcePin{{File: pypi.File{
		Project: "tiny", Version: fmt.Sprint(n), Filename: "tiny.tar.gz", Size: 7,
		SHA256: "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
	}}}}
}

// Concurrent updates lose no pin, and no reader sees half a lock.
func TestUpdateLockAtOnce(t *testing.T) {
	locks := tinySite(t)
	const many = 30
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			if done, err := locks.Update("tiny", Update{Pins: release(n)}); err != nil || !done.Wrote {
				t.Errorf("release %d: %+v, %v", n, done, err)
			}
			_, err := locks.Read("tiny")
			check.That(t, err == nil, "%v", err)
		})
	}
	wg.Wait()
	f, err := locks.Read("tiny")
	check.That(t, err == nil && len(f.Sources) == many, "%d pins of %d, %v", len(f.Sources), many, err)
	left, err := os.ReadDir(filepath.Join(locks.Site, "recipes"))
	check.That(t, err == nil && len(left) == 1, "left behind: %v, %v", left, err)
}

func TestUpdateLock(t *testing.T) {
	locks := tinySite(t)
	path := locks.path("tiny")
	done, err := locks.Update("tiny", Update{})
	_, absent := os.Stat(path)
	check.That(t, !done.Wrote && err == nil && absent != nil, "nothing to write: %+v, %v", done, err)
	if done, err = locks.Update("tiny", Update{Pins: release(1)}); !done.Wrote || !done.Before.None() || len(done.After.Sources) != 1 || err != nil {
		t.Errorf("the first pin: %+v, %v", done, err)
	}
	if done, err = locks.Update("tiny", Update{Pins: release(1)}); done.Wrote || err != nil {
		t.Errorf("the same pin: %+v, %v", done, err)
	}
	drop := func(lock.File) lock.File { return release(1) }
	if done, err = locks.Update("tiny", Update{Pins: release(2), Drop: drop}); !done.Wrote || len(done.After.Sources) != 1 || done.After.Sources[0].Version != "2" || err != nil {
		t.Errorf("one goes, one comes: %+v, %v", done, err)
	}
	must.Succeed(t, os.WriteFile(path, []byte(`{"schema": 1, "recipe": "tiny", "sources": [], "images": [], "python": []}`), 0o644))
	if done, err = locks.Update("tiny", Update{Pins: release(3)}); done.Wrote || !errors.Is(err, lock.ErrEdited) {
		t.Errorf("an edited lock: %+v, %v", done, err)
	}
	if done, err = locks.Update("tiny", Update{Pins: release(3), Replace: true}); !done.Wrote || !done.Edited || err != nil {
		t.Errorf("an edited lock that is replaced: %+v, %v", done, err)
	}
}

// With a site the lock of a built-in recipe is in the site. Its pins are laid over the
// built-in ones. The lock in the home is not used.
func TestSiteLockOfABuiltInRecipe(t *testing.T) {
	site, home := t.TempDir(), t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(site, "patches"), 0o755))
	c := must.Get(Load(site, Names{Gates: gate.Promises()}))(t)
	built, err := Catalogue{}.Locks(home).Read("horovod")
	must.Hold(t, err == nil && !built.None(), "the built-in lock: %v", err)
	if done, err := (Catalogue{}).Locks(home).Update("horovod", Update{Pins: release(1)}); err != nil || !strings.HasPrefix(done.Path, home) {
		t.Fatalf("the lock of the home: %+v, %v", done, err)
	}
	locks := c.Locks(home)
	done, err := locks.Update("horovod", Update{Pins: release(2)})
	want := filepath.Join(site, "recipes", "horovod.lock.json")
	must.Hold(t, err == nil && done.Wrote && done.Path == want, "%+v, %v", done, err)
	own, err := locks.Own("horovod")
	check.That(t, err == nil && len(own.Sources) == 1 && own.Sources[0].Version == "2", "in the site: %v, %v", own, err)
	all, err := locks.Read("horovod")
	check.That(t, err == nil && len(all.Sources) == len(built.Sources)+1 && len(all.Python) == len(built.Python),
		"laid over the built-in one: %v, %v", all, err)
}

// A shell can run the command line for missing pins unchanged.
func TestPinCommand(t *testing.T) {
	for want, c := range map[string]struct {
		site   string
		chosen matrix.Filter
	}{
		"builder lock horovod":                                      {"", nil},
		"builder lock horovod --rocm 6.1":                           {"", matrix.Filter{"rocm": "6.1"}},
		"builder lock horovod --arch gfx942 --rocm '>=6.0'":         {"", matrix.Filter{"rocm": ">=6.0", "arch": "gfx942"}},
		"builder lock horovod --recipes 'our site' --rocm 5.7,6.1":  {"our site", matrix.Filter{"rocm": "5.7,6.1"}},
		"builder lock horovod --recipes site --tensorflow '!=none'": {"site", matrix.Filter{"tensorflow": "!=none"}},
	} {
		check.Same(t, "PinCommand", want, (Catalogue{Site: c.site}).PinCommand("horovod", c.chosen))
	}
}

// A hint of a run with --recipes works as printed: its commands that name a recipe
// repeat the flag.
func TestHintsRepeatTheSite(t *testing.T) {
	c := Catalogue{Site: "our site", Recipes: []*recipe.Recipe{{Name: "dotprod"}}}
	for hint, want := range map[string]string{
		"run `builder lock dotprod --update all`": "run `builder lock dotprod --recipes 'our site' --update all`",
		"`builder patch audit --fetch dotprod`":   "`builder patch audit --fetch dotprod --recipes 'our site'`",
		"`builder plan dotprod --recipes other`":  "`builder plan dotprod --recipes other`",
		"`builder verify out/dotprod` of dotprod": "`builder verify out/dotprod` of dotprod",
		"": "",
	} {
		err := errors.Join(diag.Errorf(diag.Patch, "no").WithHint("%s", hint), errors.New("plain"))
		all := diag.All(c.Hinted(err))
		check.That(t, len(all) == 2 && all[0].Hint == want && all[0].Code == diag.Patch && all[1].Error() == "plain",
			"%q: %+v", hint, all[0])
		if got := (Catalogue{Recipes: c.Recipes}).Hinted(err); got != err { //nolint:errorlint // the same value
			t.Errorf("without a site: %v", got)
		}
	}
}
