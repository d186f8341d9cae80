package store

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Collect removes the least recently used files until the store has at most w.Most
// bytes. Partial downloads go first, then files that can be fetched again, and last the
// outputs of cells with the results that name them. Collect keeps files locked by
// another process. The caller must hold the store with [Store.Alone].
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
	slices.SortStableFunc(all, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Kind.worth(), b.Kind.worth()), a.Used.Compare(b.Used))
	})
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

// worth orders kinds by the cost of getting the file again.
func (k Kind) worth() int {
	switch k {
	case Partial:
		return 0
	case Made:
		return 2
	}
	return 1
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
// with links to blobs no longer in the store, because such links still occupy disk
// space. It keeps clones of repositories, because they are not copies of blobs. It
// returns the names of the removed entries, or in a dry run those to remove. The caller
// must hold the store with [Store.Alone].
func (s *Store) Unstage(scratch string, c Collected, dryRun bool) ([]string, error) {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	kept, err := s.inodes(c)
	if err != nil {
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
		if time.Since(info.ModTime()) < idle && !orphaned(path, kept) {
			continue
		}
		gone = append(gone, e.Name())
		if !dryRun {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return gone, errors.Join(errs...)
}

// inodes returns the inodes of the remaining blobs.
func (s *Store) inodes(c Collected) (map[uint64]bool, error) {
	digests, err := s.digests()
	going := map[string]bool{}
	for _, k := range c.Files {
		going[k.SHA256] = true
	}
	kept := map[uint64]bool{}
	for _, digest := range digests {
		if info, err := os.Lstat(s.place(digest)); err == nil && !going[digest] {
			kept[inode(info)] = true
		}
	}
	return kept, err
}

// orphaned reports whether path is a staged directory with a file that is not a link to
// a remaining blob.
func orphaned(path string, kept map[uint64]bool) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		info, err := e.Info()
		return err == nil && info.Mode().IsRegular() && info.Mode().Perm() == 0o444 && !kept[inode(info)]
	})
}
