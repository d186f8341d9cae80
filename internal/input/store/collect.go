package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Want is the target of a collection.
type Want struct {
	Most   int64               // largest size of the store in bytes
	Made   map[string][]string // from the digest of a cell's output to the keys of the results that name it
	DryRun bool
}

// Collected lists the removed files and results. In a dry run it lists those to remove.
type Collected struct {
	Before  int64    `json:"before"` // bytes
	After   int64    `json:"after"`
	Files   []Kept   `json:"files"`
	Results []string `json:"results"` // keys
}

// Collect removes the files that nobody used for the longest time until the store has at
// most w.Most bytes, and the results that name them. It keeps files locked by another
// process. The caller must hold the store with [Store.Alone].
func (s *Store) Collect(w Want) (Collected, error) {
	all, err := s.Survey(w.Made)
	if err != nil {
		return Collected{}, err
	}
	c := Collected{Files: []Kept{}, Results: []string{}}
	for _, k := range all {
		c.Before += k.Size
	}
	c.After = c.Before
	slices.SortStableFunc(all, func(a, b Kept) int { return a.Used.Compare(b.Used) })
	var errs []error
	for _, k := range all {
		if c.After <= w.Most {
			break
		}
		gone, err := s.remove(k, w)
		errs = append(errs, err)
		if !gone {
			continue
		}
		c.After -= k.Size
		c.Files = append(c.Files, k)
		c.Results = append(c.Results, w.Made[k.SHA256]...)
	}
	slices.Sort(c.Results)
	c.Results = slices.Compact(c.Results)
	return c, errors.Join(errs...)
}

// remove removes a file and the results that name it, unless another process holds its
// lock.
func (s *Store) remove(k Kept, w Want) (bool, error) {
	unlock, err := tryLock(filepath.Join(s.dir, locks, k.SHA256))
	if unlock == nil || err != nil {
		return false, err
	}
	defer unlock()
	if w.DryRun {
		return true, nil
	}
	if k.Kind == Partial {
		err = os.Remove(filepath.Join(s.dir, partials, k.SHA256))
		return err == nil, err
	}
	for _, key := range w.Made[k.SHA256] { // first, so that no result names a missing file
		if err := s.DropResult(key); err != nil {
			return false, err
		}
	}
	err = s.drop(k.SHA256)
	return err == nil, err
}

// idle is how long a staged directory stays without use.
const idle = 24 * time.Hour

// Unstage removes entries of the directory scratch: those unused for a day, and those
// with links to files that the store no longer has, because they still occupy disk
// space. It keeps clones of repositories, because they are not copies of files. It
// returns the names of the removed entries. In a dry run it removes nothing, so it
// cannot name the entries whose files a collection removes first. The caller must hold
// the store with [Store.Alone].
func (s *Store) Unstage(scratch string, dryRun bool) ([]string, error) {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	gone := []string{}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), "git-") {
			continue
		}
		path := filepath.Join(scratch, e.Name())
		if time.Since(info.ModTime()) < idle && !orphaned(path) {
			continue
		}
		gone = append(gone, e.Name())
		if !dryRun {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return gone, errors.Join(errs...)
}

// orphaned reports whether path is a staged directory with the only link to a file.
func orphaned(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o444 {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		return ok && stat.Nlink == 1
	})
}
