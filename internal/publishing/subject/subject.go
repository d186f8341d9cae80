// Package subject finds the finished artifacts the user names, by file or by the
// directory of a cell, with their promises and the files beside them. It does not judge
// them. Gates and package attest do.
package subject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/files/inspect"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/machine/locate"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/internal/view/report"
)

// A Subject is an artifact to be judged.
type Subject struct {
	Artifact artifact.Artifact
	Expect   recipe.Expect
	Key      string // of the entry with Expect
	Entry    lock.Entry
	Promise  string         // file of Expect and Entry, "" without a promise
	Doubted  bool           // the promise has no trusted signature, and the user did not name it
	given    bool           // the user named the promise
	Beside   []string       // files made with it
	Library  string         // NCCL or RCCL in the wheel, "" for none
	Is       inspect.Report // result of Inspect
	Fault    error          // error of Inspect
}

// Find finds the artifacts of every path, and joins all errors. The promise is the
// entry file named by the user, or the one beside the artifact.
func Find(paths []string, entry string) ([]Subject, error) {
	var subjects []Subject
	var errs []error
	for _, path := range paths {
		found, err := find(path, entry)
		subjects, errs = append(subjects, found...), append(errs, err)
	}
	return subjects, errors.Join(errs...)
}

// Vouch decides how far the promise counts, and returns a note for the user. signed is
// the key of the entry signed for these bytes by a trusted key. An unsigned promise
// waives nothing. Beside other expectations it does not count at all, because anyone
// with write access to a directory can put a promise there.
func (s *Subject) Vouch(signed string, expected bool) (note string) {
	if s.Promise == "" || s.given || s.Key == signed {
		return ""
	}
	path := s.Promise
	if !expected {
		s.Doubted, s.Expect.Waivers = true, nil
		return fmt.Sprintf("%s has no trusted signature: it can refuse %s, but it waives no gate and lets none pass (if you trust the file, give --entry %s)", path, s.Artifact.Name, path)
	}
	*s = Subject{Artifact: s.Artifact}
	s.lookForLibrary()
	return fmt.Sprintf("%s has no trusted signature: --expect replaces it", path)
}

func find(path, entry string) ([]Subject, error) {
	wheels, err := wheelsOf(path, true)
	var subjects []Subject
	for _, wheel := range wheels {
		s, err := read(wheel, entry)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, err
}

// Passed finds the wheels of every path: the file itself, or the wheels that passed in
// the directory of a cell, or the archive in their place. A refused wheel has no
// bundle.
func Passed(paths []string) ([]string, error) {
	var wheels []string
	var errs []error
	for _, path := range paths {
		found, err := wheelsOf(path, false)
		wheels, errs = append(wheels, found...), append(errs, err)
	}
	return wheels, errors.Join(errs...)
}

// wheelsOf lists the artifacts that a path names: the file itself, or the wheels of a cell
// that passed, or the archive in their place. Without one, refused admits those that a gate
// refused.
func wheelsOf(path string, refused bool) ([]string, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return []string{path}, nil
	}
	tree := "" // the name of the archive that the cell makes in place of a wheel
	if e, err := lock.ReadEntry(path); err == nil {
		tree = e.Expect.Tree
	}
	var found []string
	if err == nil {
		found, err = wheelsIn(path, tree)
	}
	if err != nil {
		hint := "give the directory of a cell, or a wheel"
		if strings.Contains(path, "://") {
			hint = "download the wheel, and give its path"
		}
		return nil, diag.Errorf(diag.Usage, "%w", err).WithHint("%s", hint)
	}
	rejected, err := wheelsIn(filepath.Join(path, artifact.RejectedDir), tree)
	switch {
	case len(found) > 0:
		return found, nil
	case refused && (len(rejected) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)):
		return rejected, err
	case len(rejected) > 0:
		return nil, diag.Errorf(diag.Gate, "%s: a gate refused %s", path, filepath.Base(rejected[0])).
			WithHint("the report.html of its run and the logs of the cell (logs/gate-*.log) name the gate")
	}
	if ran, err := report.Read(filepath.Join(path, "run.json")); err == nil && len(ran.Cells) > 0 {
		return nil, diag.Errorf(diag.Usage, "%s holds the results of a run, and a cell is needed", path).
			WithHint("give the directory of a cell, such as %s", filepath.Join(path, ran.Cells[0].ID))
	}
	return nil, diag.Errorf(diag.Usage, "%s holds no %s that passed", path, cmp.Or(tree, "wheel")).
		WithHint("give the directory of a cell, or a wheel")
}

// wheelsIn lists the wheels in a directory, and the file named tree.
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

// Inspect inspects the artifact if asked is set or if there is no promise. It reports
// whether it did so.
func (s *Subject) Inspect(ctx context.Context, asked bool) bool {
	if s.Promise != "" && !asked {
		return false
	}
	s.Is, s.Fault = inspect.File(ctx, s.Artifact.Path)
	return true
}

// read measures a file and finds its promise: in the given entry file, or else beside
// the wheel. For a refused wheel it also looks one directory up.
func read(path, entry string) (Subject, error) {
	a, err := artifact.Of(path, "")
	if err != nil {
		return Subject{}, diag.Errorf(diag.Usage, "%w", err)
	}
	s := Subject{Artifact: a}
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, lock.EntryFile)}
	if filepath.Base(dir) == artifact.RejectedDir {
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
			err = diag.Errorf(diag.Usage, "reading the promise of %s: %w", a.Name, err).WithHint("give the entry.json of its cell with --entry FILE")
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
	if s.Promise == "" && filepath.Ext(path) != ".whl" && !inspect.Takes(path) {
		return Subject{}, diag.Errorf(diag.Usage, "%s is not a wheel or a shared library", path).
			WithHint("give a wheel, a library, or the directory of a cell; for an archive, give the entry.json of its cell with --entry FILE")
	}
	return s, nil
}

// lookForLibrary finds the library promised by or contained in the artifact.
func (s *Subject) lookForLibrary() {
	s.Library = locate.LibraryIn(s.Artifact.Path, s.Expect.Library)
	if s.Library != "" && len(s.Expect.Collectives) == 0 {
		s.Expect.Collectives = []string{"all_reduce"} // supported by every NCCL
	}
}

// Source finds the source tree of the subject in the store of a home. It returns nil if
// the tree is missing or damaged.
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

// filesBeside lists the other files in an artifact's directory.
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
