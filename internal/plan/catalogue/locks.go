package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/shell"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/recipes"
)

// Locks reads and writes the locks of a catalogue's recipes on this host. The locks of
// the site are laid over the built-in ones; without a site, those of the user's home
// are.
type Locks struct {
	Catalogue
	home string
}

// path returns the file of a recipe's own lock. With a site it is in the site, also for
// built-in recipes. Otherwise it is below the home, because built-in files are
// read-only.
func (l Locks) path(name string) string {
	if l.Site != "" {
		return filepath.Join(l.Site, "recipes", lockFile(name))
	}
	return filepath.Join(l.home, "locks", lockFile(name))
}

// lockFile returns the file name of the lock of a recipe.
func lockFile(name string) string { return name + ".lock.json" }

// Read returns the pins of a recipe: the built-in ones with those at the lock path laid
// over them.
func (l Locks) Read(name string) (lock.File, error) {
	built, err := l.built(name)
	if err != nil {
		return built, err
	}
	own, err := l.Own(name)
	if own.None() {
		return built, err
	}
	return built.With(own), err
}

// built returns the built-in pins.
func (l Locks) built(name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	if _, ofSite := l.bring["recipe "+name]; ofSite {
		return none, nil
	}
	data, err := recipes.FS.ReadFile(lockFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return lock.Decode("recipes/"+lockFile(name), data)
}

// Own returns the pins at the lock path. A missing file has no pins.
func (l Locks) Own(name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	if l.Site == "" && l.home == "" { // builder's own data alone
		return none, nil
	}
	path := l.path(name)
	var data []byte
	var err error
	if l.Site == "" {
		data, err = regular.ReadFollowed(path, maxSiteFile)
	} else {
		var folder fs.FS
		if folder, err = siteFolder(l.Site, "recipes"); err == nil {
			data, err = fs.ReadFile(folder, lockFile(name))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, asUsage(err)
	}
	own, err := lock.Decode(path, data)
	if err == nil && own.Recipe != name {
		err = diag.Errorf(diag.Drift, "%s: the file is the lock of %q", path, own.Recipe)
	}
	if err != nil {
		return none, l.damaged(err, name)
	}
	return own, nil
}

// damaged adds a hint on how to repair an unreadable lock. Plain builder lock does not
// repair it, because it reads the lock too.
func (l Locks) damaged(err error, name string) error {
	pin := l.PinCommand(name, nil)
	if errors.Is(err, lock.ErrEdited) {
		return diag.HintAll(err, "restore it from version control, or resolve every name again with `"+pin+" --update all`")
	}
	return diag.HintAll(err, "restore the file, or remove it and run `"+pin+"`")
}

// PinCommand returns the command line to pin the chosen cells.
func (c Catalogue) PinCommand(recipe string, chosen matrix.Filter) string {
	words := []string{"builder", "lock", recipe}
	if c.Site != "" {
		words = append(words, "--recipes", c.Site)
	}
	for _, axis := range slices.Sorted(maps.Keys(chosen)) {
		words = append(words, "--"+axis, chosen[axis])
	}
	return shell.Line(words...)
}

// quoted matches a command of builder in a text.
var quoted = regexp.MustCompile("`builder [^`]*`")

// Hinted completes the hints of err with [Catalogue.Commands]. Every error passes here
// on its way to the user.
func (c Catalogue) Hinted(err error) error {
	all := diag.All(err)
	changed := false
	for _, e := range all {
		hint := c.Commands(e.Hint)
		changed = changed || hint != e.Hint
		e.Hint = hint
	}
	if !changed {
		return err
	}
	return diag.Joined(all)
}

// Commands adds --recipes with the site to the commands in a text that name a recipe:
// without it they would miss a recipe, patch or image of the site.
func (c Catalogue) Commands(text string) string {
	if c.Site == "" {
		return text
	}
	return quoted.ReplaceAllStringFunc(text, func(line string) string {
		words := strings.Split(strings.Trim(line, "`"), " ")
		at := slices.IndexFunc(words, func(word string) bool { return slices.Contains(c.Names(), word) })
		if at < 0 || slices.Contains(words, "--recipes") {
			return line
		}
		return "`" + strings.Join(slices.Insert(words, at+1, "--recipes", shell.Word(c.Site)), " ") + "`"
	})
}

// An Update is a change to the lock of a recipe.
type Update struct {
	Pins    lock.File                     // the resolved pins
	Replace bool                          // replace a lock edited by hand
	Drop    func(own lock.File) lock.File // returns the pins to drop; may be nil
}

// Updated is the result of an [Update].
type Updated struct {
	Path          string
	Before, After lock.File // including the built-in pins
	Edited        bool      // the file was edited by hand and its pins were ignored
	Wrote         bool
}

// Update changes the lock of a recipe. It holds a file lock, so that concurrent
// processes do not lose each other's pins.
func (l Locks) Update(name string, u Update) (Updated, error) {
	done := Updated{Path: l.path(name)}
	if err := os.MkdirAll(filepath.Dir(done.Path), 0o755); err != nil {
		return done, fmt.Errorf("writing the lock: %w", err)
	}
	unlock, err := store.Lock(context.Background(), done.Path+".flock", nil)
	if err != nil {
		return done, err
	}
	defer unlock()
	built, err := l.built(name)
	if err != nil {
		return done, err
	}
	own, err := l.Own(name)
	done.Edited = u.Replace && errors.Is(err, lock.ErrEdited)
	if err != nil && !done.Edited {
		return done, err
	}
	done.Before = built.With(own)
	own = own.With(done.Before.Moved(u.Pins))
	if u.Drop != nil {
		own = own.Without(u.Drop(own))
	}
	done.After = built.With(own)
	if _, err := os.Stat(done.Path); errors.Is(err, fs.ErrNotExist) && own.None() {
		return done, nil // the built-in pins suffice
	}
	done.Wrote, err = lock.Write(done.Path, own)
	return done, err
}
