// Package subject finds finished artifacts where a person names them, by a file or
// by the directory of a cell, with what they promise and what lies beside them. It
// judges none: gates do, and attest.
package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/files/artifact"
	"builder/internal/files/inspect"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/machine/locate"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
)

// A Subject is an artifact that is judged.
type Subject struct {
	Artifact artifact.Artifact
	Expect   recipe.Expect
	Key      string // of the entry that Expect stands in
	Entry    lock.Entry
	Promise  string         // the file that Expect and Entry stand in, "" where nothing is promised
	Doubted  bool           // nobody who is trusted signed the promise, and nobody gave it
	given    bool           // a person named the promise
	Beside   []string       // the files that were made with it
	Library  string         // member of the wheel that is NCCL or RCCL, "" where none is
	Is       inspect.Report // what it is, once it was inspected
	Fault    error          // why it could not be inspected
}

// Find finds the artifacts of every path, and all that is wrong with any. What they
// promise is in the file of an entry that a person named, or in that beside them.
func Find(paths []string, entry string) ([]Subject, error) {
	var subjects []Subject
	var faults []error
	for _, path := range paths {
		found, err := find(path, entry)
		subjects, faults = append(subjects, found...), append(faults, err)
	}
	return subjects, errors.Join(faults...)
}

// Vouch says what the promise is worth, and returns what is to be told of it. Signed is
// the key of the entry that a trusted key signed about these bytes. A promise that
// nobody signed waives nothing, and beside other expectations it does not count at
// all: whoever can write to a directory can put one there.
func (s *Subject) Vouch(signed string, expected bool) (note string) {
	if s.Promise == "" || s.given || s.Key == signed {
		return ""
	}
	path := s.Promise
	if !expected {
		s.Doubted, s.Expect.Waivers = true, nil
		return fmt.Sprintf("%s: nobody who is trusted signed it: it can refuse %s, and neither waive a gate nor let it pass (--entry %s if you know it)", path, s.Artifact.Name, path)
	}
	*s = Subject{Artifact: s.Artifact}
	s.lookForLibrary()
	return fmt.Sprintf("%s: nobody who is trusted signed it: it does not count beside --expect", path)
}

func find(path, entry string) ([]Subject, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "%w", err).WithHint("name the directory of a cell, or a wheel")
	}
	if !info.IsDir() {
		s, err := read(path, entry)
		return []Subject{s}, err
	}
	wheels, err := wheelsOf(path)
	if err != nil {
		return nil, err
	}
	var subjects []Subject
	for _, wheel := range wheels {
		s, err := read(wheel, entry)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

// Passed finds the wheels of every path: that of a file, or those that
// passed in the directory of a cell, or the archive in their place. What a gate
// refused has no bundle.
func Passed(paths []string) ([]string, error) {
	var wheels []string
	var faults []error
	for _, path := range paths {
		found := []string{path}
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			tree := treeOf(path)
			if found, err = wheelsIn(path, tree); err == nil && len(found) == 0 {
				err = fmt.Errorf("%s holds no %s that passed", path, cmp.Or(tree, "wheel"))
			}
		}
		if err != nil {
			faults = append(faults, diag.Errorf(diag.Usage, "%w", err).WithHint("name the directory of a cell, or a wheel"))
			continue
		}
		wheels = append(wheels, found...)
	}
	return wheels, errors.Join(faults...)
}

// wheelsOf lists the wheels of a cell, or the archive that it makes in their place:
// what passed, else what a gate refused.
func wheelsOf(dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, lock.EntryFile)); err != nil {
		return nil, diag.Errorf(diag.Usage, "%s is not the directory of a cell: it holds no %s", dir, lock.EntryFile).
			WithHint("builder run writes one below --out; or name a wheel")
	}
	tree := treeOf(dir)
	for _, place := range []string{dir, filepath.Join(dir, run.RejectedDir)} {
		wheels, err := wheelsIn(place, tree)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(wheels) > 0 {
			return wheels, nil
		}
	}
	return nil, diag.Errorf(diag.Usage, "%s holds no %s", dir, cmp.Or(tree, "wheel")).WithHint("the cell was not built: builder run")
}

// treeOf returns the name of the archive that the cell of a directory makes in
// place of a wheel, "" for any other directory.
func treeOf(dir string) string {
	e, err := lock.ReadEntry(dir)
	if err != nil {
		return ""
	}
	return e.Expect.Tree
}

// wheelsIn lists the wheels that lie in a directory, and the file called tree.
func wheelsIn(dir, tree string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var wheels []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".whl" || tree != "" && e.Name() == tree {
			wheels = append(wheels, filepath.Join(dir, e.Name()))
		}
	}
	return wheels, err
}

// Inspect says what the artifact is, where that was asked or nobody says what it
// is to be.
func (s *Subject) Inspect(ctx context.Context, asked bool) bool {
	if s.Promise != "" && !asked {
		return false
	}
	s.Is, s.Fault = inspect.File(ctx, s.Artifact.Path)
	return true
}

// read measures a file and finds its promise: in the file of an entry that was named,
// else beside it, or one directory up for a wheel that was refused.
func read(path, entry string) (Subject, error) {
	a, err := artifact.Of(path, "")
	if err != nil {
		return Subject{}, diag.Errorf(diag.Usage, "%w", err)
	}
	s := Subject{Artifact: a}
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, lock.EntryFile)}
	if filepath.Base(dir) == run.RejectedDir {
		places = append(places, filepath.Join(filepath.Dir(dir), lock.EntryFile))
	}
	if entry != "" {
		s.given, places = true, []string{entry}
	}
	for _, place := range places {
		e, err := lock.ReadEntryFile(place)
		if errors.Is(err, fs.ErrNotExist) && !s.given {
			continue
		}
		if _, explained := errors.AsType[*diag.Error](err); err != nil && !explained {
			err = diag.Errorf(diag.Usage, "reading what %s promises: %w", a.Name, err).WithHint("name the entry.json of its cell: --entry FILE")
		}
		if err != nil {
			return Subject{}, err
		}
		s.Expect, s.Key, s.Entry, s.Promise = e.Expect, e.Key(), e, place
		break
	}
	if s.Promise != "" {
		if s.Beside, err = filesBeside(path); err != nil {
			return Subject{}, err
		}
	}
	s.lookForLibrary()
	return s, nil
}

// lookForLibrary finds the library that the artifact promises, or has.
func (s *Subject) lookForLibrary() {
	s.Library = locate.LibraryIn(s.Artifact.Path, s.Expect.Library)
	if s.Library != "" && len(s.Expect.Collectives) == 0 {
		s.Expect.Collectives = []string{"all_reduce"} // what every NCCL can do
	}
}

// Source finds the source tree of a subject in the store of a home; nil is that it
// is not at hand.
func (s Subject) Source(home string) *gate.Upstream {
	dir := filepath.Join(home, "store")
	if _, err := os.Stat(dir); err != nil || s.Promise == "" {
		return nil
	}
	kept, err := store.Open(dir)
	if err != nil || kept.Verify(s.Entry.Source.Blob()) != nil {
		return nil
	}
	path, _ := kept.Path(s.Entry.Source.Blob())
	return &gate.Upstream{Archive: path, Name: s.Entry.Source.Filename, Patches: s.Entry.Patches, Facts: s.Entry.Facts}
}

// filesBeside lists the other files of an artifact's directory.
func filesBeside(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	var beside []string
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != filepath.Base(path) {
			beside = append(beside, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return beside, err
}
