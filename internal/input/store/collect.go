package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Kept is a file of the store.
type Kept struct {
	SHA256  string    `json:"sha256"`
	Size    int64     `json:"size"`
	Used    time.Time `json:"used"`    // last use
	Partial bool      `json:"partial"` // the next fetch continues it
}

// Survey lists all files, sorted by digest, followed by the partial downloads.
func (s *Store) Survey() ([]Kept, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, contents, "??", "*"))
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, path := range paths {
		digest := filepath.Base(path)
		if !digestPattern.MatchString(digest) || slotOf(s.dir, digest).blob != path {
			continue // a foreign file
		}
		if info, err := os.Lstat(path); err == nil { // else removed meanwhile
			all = append(all, Kept{digest, info.Size(), slotOf(s.dir, digest).lastUse(info), false})
		}
	}
	begun, err := os.ReadDir(filepath.Join(s.dir, partials))
	for _, e := range begun {
		if info, err := e.Info(); err == nil {
			all = append(all, Kept{e.Name(), info.Size(), info.ModTime(), true})
		}
	}
	return all, err
}

// Collected lists the removed files. In a dry run it lists those to remove.
type Collected struct {
	Before int64  `json:"before"` // bytes
	After  int64  `json:"after"`
	Files  []Kept `json:"files"`
}

// Collect removes the files that nobody used for the longest time until the store has at
// most this number of bytes. It keeps files locked by another process. The caller must
// hold the store with [Store.Alone].
func (s *Store) Collect(most int64, dryRun bool) (Collected, error) {
	all, err := s.Survey()
	if err != nil {
		return Collected{}, err
	}
	c := Collected{Files: []Kept{}}
	for _, k := range all {
		c.Before += k.Size
	}
	c.After = c.Before
	slices.SortStableFunc(all, func(a, b Kept) int { return a.Used.Compare(b.Used) })
	var errs []error
	for _, k := range all {
		if c.After <= most {
			break
		}
		gone, err := remove(s.dir, k, dryRun)
		errs = append(errs, err)
		if gone {
			c.After -= k.Size
			c.Files = append(c.Files, k)
		}
	}
	return c, errors.Join(errs...)
}

// Drop removes files, but keeps those locked by another process. The caller must hold the
// store with [Store.TryAlone].
func (s *Store) Drop(files []Blob) error {
	var errs []error
	for _, b := range files {
		if _, there := s.Path(b); there {
			_, err := remove(s.dir, Kept{SHA256: b.SHA256}, false)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// remove removes a file of the store at dir, unless another process holds its lock.
func remove(dir string, k Kept, dryRun bool) (bool, error) {
	unlock, err := tryLock(filepath.Join(dir, locks, k.SHA256))
	if unlock == nil || err != nil {
		return false, err
	}
	defer unlock()
	switch {
	case dryRun:
	case k.Partial:
		err = os.Remove(filepath.Join(dir, partials, k.SHA256))
	default:
		err = slotOf(dir, k.SHA256).drop()
	}
	return err == nil, err
}

// Unstage removes the entries of the directory scratch, because links in them keep the
// space of removed files. It leaves clones of repositories, which are no copies of files,
// and shells of the last day, which can be open without a hold of the store. It returns
// the names of the removed entries. In a dry run it removes nothing. The caller must hold
// the store with [Store.Alone].
func Unstage(scratch string, dryRun bool) ([]string, error) {
	entries, err := os.ReadDir(scratch)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	gone := []string{}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		shell := strings.HasPrefix(e.Name(), "shell-")
		if err != nil || strings.HasPrefix(e.Name(), "git-") || shell && time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		gone = append(gone, e.Name())
		if !dryRun {
			errs = append(errs, os.RemoveAll(filepath.Join(scratch, e.Name())))
		}
	}
	return gone, errors.Join(errs...)
}
