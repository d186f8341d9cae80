package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"builder/internal/artifact"
	"builder/internal/diag"
	"builder/internal/gate"
	"builder/internal/inspect"
	"builder/internal/locate"
	"builder/internal/lock"
	"builder/internal/recipe"
	"builder/internal/run"
	"builder/internal/store"
)

// subject is an artifact that is judged.
type subject struct {
	artifact artifact.Artifact
	expect   recipe.Expect
	key      string // of the entry that expect stands in
	entry    lock.Entry
	promise  string   // the file that expect and entry stand in, "" where nothing is promised
	beside   []string // the files that were made with it
	library  string   // member of the wheel that is NCCL or RCCL, "" where none is
	is       inspect.Report
	isFault  error // why it could not be inspected
}

// findSubjects finds the artifacts of every path, and all that is wrong with any.
func findSubjects(paths []string) ([]subject, error) {
	var subjects []subject
	var faults []error
	for _, path := range paths {
		found, err := findSubject(path)
		subjects, faults = append(subjects, found...), append(faults, err)
	}
	return subjects, errors.Join(faults...)
}

func findSubject(path string) ([]subject, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "%w", err).WithHint("name the directory of a cell, or a wheel")
	}
	if !info.IsDir() {
		s, err := newSubject(path)
		return []subject{s}, err
	}
	wheels, err := wheelsOf(path)
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for _, wheel := range wheels {
		s, err := newSubject(wheel)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

// wheelsOf lists the wheels of a cell, or the archive that it makes in their place:
// what passed, else what a gate refused.
func wheelsOf(dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, lock.EntryFile)); err != nil {
		return nil, diag.Errorf(diag.Usage, "%s is not the directory of a cell: it holds no %s", dir, lock.EntryFile).
			WithHint("builder run writes one below --out; or name a wheel")
	}
	for _, place := range []string{dir, filepath.Join(dir, run.RejectedDir)} {
		wheels, err := wheelsIn(place, treeOf(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(wheels) > 0 {
			return wheels, nil
		}
	}
	return nil, diag.Errorf(diag.Usage, "%s holds no %s", dir, cmp.Or(treeOf(dir), "wheel")).WithHint("the cell was not built: builder run")
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

// inspect says what the artifact is, where that was asked or nobody says what it
// is to be.
func (s *subject) inspect(asked bool) bool {
	if s.promise != "" && !asked {
		return false
	}
	s.is, s.isFault = inspect.File(s.artifact.Path)
	return true
}

// newSubject measures a file and finds its promise: beside it, or one directory up
// for a wheel that was refused.
func newSubject(path string) (subject, error) {
	a, err := artifact.Of(path, "")
	if err != nil {
		return subject{}, diag.Errorf(diag.Usage, "%w", err)
	}
	s := subject{artifact: a}
	dir := filepath.Dir(path)
	places := []string{dir}
	if filepath.Base(dir) == run.RejectedDir {
		places = append(places, filepath.Dir(dir))
	}
	for _, place := range places {
		e, err := lock.ReadEntry(place)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return subject{}, err
		}
		s.expect, s.key, s.entry, s.promise = e.Expect, e.Key(), e, filepath.Join(place, lock.EntryFile)
		break
	}
	if s.promise != "" {
		if s.beside, err = filesBeside(path); err != nil {
			return subject{}, err
		}
	}
	s.library = locate.LibraryIn(path, s.expect.Library)
	if s.library != "" && len(s.expect.Collectives) == 0 {
		s.expect.Collectives = []string{"all_reduce"} // what every NCCL can do
	}
	return s, nil
}

// source finds the source tree of a subject in the store of a home; nil is that it
// is not at hand.
func (s subject) source(home string) *gate.Source {
	dir := filepath.Join(home, "store")
	if _, err := os.Stat(dir); err != nil || s.promise == "" {
		return nil
	}
	kept, err := store.Open(dir)
	if err != nil || kept.Verify(s.entry.Source.Blob()) != nil {
		return nil
	}
	path, _ := kept.Path(s.entry.Source.Blob())
	return &gate.Source{Archive: path, Name: s.entry.Source.Filename, Patches: s.entry.Patches, Facts: s.entry.Facts}
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
