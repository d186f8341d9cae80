package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Kept is a file of the store.
type Kept struct {
	SHA256 string    `json:"sha256"`
	Size   int64     `json:"size"`
	Kind   Kind      `json:"kind"`
	Used   time.Time `json:"used"` // last use
}

// Kind says how a file came into the store.
type Kind string

// The kinds of files.
const (
	Input   Kind = "input"   // fetched
	Made    Kind = "result"  // output of a cell
	Partial Kind = "partial" // partial download, continued by the next fetch
)

// Kinds lists all kinds in the order of printing.
func Kinds() []Kind { return []Kind{Input, Made, Partial} }

// Survey lists all files, sorted by digest, followed by the partial downloads. made
// maps the digests of cells' outputs to the keys of their results.
func (s *Store) Survey(made map[string][]string) ([]Kept, error) {
	digests, err := s.digests()
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, digest := range digests {
		info, err := os.Lstat(s.place(digest))
		if err != nil {
			continue // removed meanwhile
		}
		k := Kept{digest, info.Size(), Input, s.lastUse(digest, info)}
		if len(made[digest]) > 0 {
			k.Kind = Made
		}
		all = append(all, k)
	}
	begun, err := os.ReadDir(filepath.Join(s.dir, partials))
	for _, e := range begun {
		if info, err := e.Info(); err == nil {
			all = append(all, Kept{e.Name(), info.Size(), Partial, info.ModTime()})
		}
	}
	return all, err
}

// digests lists the digests of the blobs. It ignores foreign files in their folders.
func (s *Store) digests() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, contents, "??", "*"))
	var all []string
	for _, path := range paths {
		if name := filepath.Base(path); digestPattern.MatchString(name) && s.place(name) == path {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, err
}

// lastUse returns the last use of a blob, or its arrival if it was not used since.
func (s *Store) lastUse(digest string, info fs.FileInfo) time.Time {
	if noted, err := os.Stat(s.record(digest)); err == nil {
		return noted.ModTime()
	}
	return info.ModTime()
}
