package catalogue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/shell"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/plan/matrix"
	"builder/internal/plan/stack"
	"builder/recipes"
	"builder/stacks"
)

// Locks are the locks of a catalogue's recipes on this host: the built-in ones, and
// those of the site or, where there is no site, of the user laid over them.
type Locks struct {
	Catalogue
	home string
}

// path is where a recipe's lock is read and written: in the site, whoever brings
// the recipe, else below the home, because what is built in cannot be written.
func (l Locks) path(name string) string {
	if l.Site != "" {
		folder, file := lockFile(name)
		return filepath.Join(l.Site, folder, file)
	}
	return filepath.Join(l.home, "locks", name+".lock.json")
}

// lockFile is where the lock of a recipe or a stack lies among data: beside the
// file that asks for it.
func lockFile(name string) (folder, file string) {
	if stack, ok := strings.CutPrefix(name, stack.Prefix); ok {
		return "stacks", stack + ".lock.json"
	}
	return "recipes", name + ".lock.json"
}

// Read returns the pins of a recipe: the built-in ones with those of the
// lock path laid over them.
func (l Locks) Read(name string) (lock.File, error) {
	built, err := l.built(name)
	if err != nil {
		return built, err
	}
	own, err := l.Own(name)
	return built.With(own), err
}

// built returns the pins that come with the tool.
func (l Locks) built(name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	if l.owned[name] {
		return none, nil
	}
	folder, file := lockFile(name)
	data, err := map[string]embed.FS{"recipes": recipes.FS, "stacks": stacks.FS}[folder].ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	return lock.Decode(folder+"/"+file, data)
}

// Own returns the pins at the lock path, none where there is no file.
func (l Locks) Own(name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	path := l.path(name)
	data, err := l.ownFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, asUsage(err)
	}
	own, err := lock.Decode(path, data)
	if err == nil && own.Recipe != name {
		err = diag.Errorf(diag.Drift, "%s: this is the lock of %q", path, own.Recipe)
	}
	if err != nil {
		return none, l.damaged(err, name)
	}
	return own, nil
}

// ownFile reads the file at the lock path.
func (l Locks) ownFile(name string) ([]byte, error) {
	if l.Site == "" {
		return regular.ReadFollowed(l.path(name), maxSiteFile)
	}
	site, err := openSite(l.Site)
	if err != nil {
		return nil, err
	}
	folder, file := lockFile(name)
	return fs.ReadFile(site.folder(folder), file)
}

// damaged says what mends a lock that cannot be read: builder lock reads it too.
func (l Locks) damaged(err error, name string) error {
	pin := l.PinCommand(name, nil)
	if errors.Is(err, lock.ErrEdited) {
		return diag.HintAll(err, "restore it from version control, or resolve every name anew with `"+pin+" --update`")
	}
	return diag.HintAll(err, "restore the file, or remove it and run `"+pin+"`")
}

// PinCommand is the command line that pins what the chosen cells need.
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

// An Update is what happens to the lock of a recipe.
type Update struct {
	Pins    lock.File                     // what names were resolved to
	Replace bool                          // a lock that was edited by hand is written anew
	Drop    func(own lock.File) lock.File // what goes; may be nil
}

// An Updated lock is what an update made of a lock.
type Updated struct {
	Path          string
	Before, After lock.File // with the pins that are built in
	Edited        bool      // the pins of the file were not read
	Wrote         bool
}

// Update changes the lock of a recipe. One process at a time reads, changes
// and writes, so that none loses the pins of another.
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
		return done, nil // what is built in is enough
	}
	done.Wrote, err = lock.Write(done.Path, own)
	return done, err
}
