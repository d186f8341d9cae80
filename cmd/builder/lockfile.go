package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/diag"
	"builder/internal/lock"
	"builder/internal/stack"
	"builder/internal/store"
	"builder/recipes"
	"builder/stacks"
)

// lockPath is where a recipe's lock is written: beside the recipe if the site
// brings it, else below the home, because what is built in cannot be written.
func (c catalogue) lockPath(home, name string) string {
	if c.owned[name] {
		folder, file := lockFile(name)
		return filepath.Join(c.site, folder, file)
	}
	return filepath.Join(home, "locks", name+".lock.json")
}

// lockFile is where the lock of a recipe or a stack lies among data: beside the
// file that asks for it.
func lockFile(name string) (folder, file string) {
	if stack, ok := strings.CutPrefix(name, stack.Prefix); ok {
		return "stacks", stack + ".lock.json"
	}
	return "recipes", name + ".lock.json"
}

// readLock returns the pins of a recipe: the built-in ones with those of the
// lock path laid over them.
func (c catalogue) readLock(home, name string) (lock.File, error) {
	built, err := c.builtLock(name)
	if err != nil {
		return built, err
	}
	own, err := c.ownLock(home, name)
	return built.With(own), err
}

// builtLock returns the pins that come with the tool.
func (c catalogue) builtLock(name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	if c.owned[name] {
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

// ownLock returns the pins at the lock path, none where there is no file.
func (c catalogue) ownLock(home, name string) (lock.File, error) {
	none := lock.File{Schema: lock.Schema, Recipe: name}
	path := c.lockPath(home, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	own, err := lock.Decode(path, data)
	if err == nil && own.Recipe != name {
		err = diag.Errorf(diag.Drift, "%s: this is the lock of %q", path, own.Recipe)
	}
	if err != nil {
		return none, c.damaged(err, name)
	}
	return own, nil
}

// damaged says what mends a lock that cannot be read: builder lock reads it too.
func (c catalogue) damaged(err error, name string) error {
	pin := c.pinCommand(name, nil)
	if errors.Is(err, lock.ErrEdited) {
		return hinted(err, "restore it from version control, or resolve every name anew with `"+pin+" --update`")
	}
	return hinted(err, "restore the file, or remove it and run `"+pin+"`")
}

// hinted gives the last of several faults the hint for all of them.
func hinted(err error, hint string) error {
	all := diag.All(err)
	faults := make([]error, len(all))
	for i, fault := range all {
		fault.Hint = ""
		if i == len(all)-1 {
			fault.Hint = hint
		}
		faults[i] = fault
	}
	return errors.Join(faults...)
}

// An update is what happens to the lock of a recipe.
type update struct {
	pins    lock.File                     // what names were resolved to
	replace bool                          // a lock that was edited by hand is written anew
	drop    func(own lock.File) lock.File // what goes; may be nil
}

// An updated lock is what an update made of a lock.
type updated struct {
	path          string
	before, after lock.File // with the pins that are built in
	edited        bool      // the pins of the file were not read
	wrote         bool
}

// updateLock changes the lock of a recipe. One process at a time reads, changes
// and writes, so that none loses the pins of another.
func (c catalogue) updateLock(home, name string, u update) (updated, error) {
	done := updated{path: c.lockPath(home, name)}
	if err := os.MkdirAll(filepath.Dir(done.path), 0o755); err != nil {
		return done, fmt.Errorf("writing the lock: %w", err)
	}
	unlock, err := store.Lock(context.Background(), done.path+".flock", nil)
	if err != nil {
		return done, err
	}
	defer unlock()
	built, err := c.builtLock(name)
	if err != nil {
		return done, err
	}
	own, err := c.ownLock(home, name)
	done.edited = u.replace && errors.Is(err, lock.ErrEdited)
	if err != nil && !done.edited {
		return done, err
	}
	done.before = built.With(own)
	own = own.With(done.before.Moved(u.pins))
	if u.drop != nil {
		own = own.Without(u.drop(own))
	}
	done.after = built.With(own)
	if _, err := os.Stat(done.path); errors.Is(err, fs.ErrNotExist) && own.None() {
		return done, nil // what is built in is enough
	}
	done.wrote, err = lock.Write(done.path, own)
	return done, err
}
