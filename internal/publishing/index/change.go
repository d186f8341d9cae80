package index

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// without returns the records but for that of one file.
func without(all []Record, r Record) []Record {
	return slices.DeleteFunc(slices.Clone(all), r.sameFile)
}

// write puts the record down and makes the pages that follow from it and from all
// others.
func (x *Index) write(r Record, all []Record) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if _, err := putBytes(x.recordPath(r.Project, r.Filename), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	if _, err := putBytes(filepath.Join(x.dir, keysDir, r.Key+".json"), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	return x.pages(append(without(all, r), r), r.Project)
}

func (x *Index) recordPath(project, filename string) string {
	return filepath.Join(x.dir, filesDir, project, filename+recordEnd)
}

// Withdraw takes the wheels of keys out of the pages and then removes their files. A
// key without a wheel is none to withdraw.
func (x *Index) Withdraw(ctx context.Context, keys ...string) error {
	if len(keys) == 0 { // who removes nothing need not be able to write
		return nil
	}
	free, err := x.lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	all, err := x.All(ctx)
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return !slices.Contains(keys, r.Key) })
	var projects []string
	for _, r := range gone {
		if err := errors.Join(remove(x.recordPath(r.Project, r.Filename)), remove(filepath.Join(x.dir, keysDir, r.Key+".json"))); err != nil {
			return failed(err, "withdrawing %s", r.Filename)
		}
		all, projects = without(all, r), append(projects, r.Project)
	}
	if err := x.pages(all, projects...); err != nil {
		return err
	}
	var faults []error
	for _, r := range gone {
		if err := x.removeFiles(r); err != nil {
			faults = append(faults, failed(err, "removing the files of %s", r.Filename))
		}
	}
	return errors.Join(faults...)
}

// removeFiles removes a wheel and what is its alone: other wheels of a cell may
// share what lies beside it.
func (x *Index) removeFiles(r Record) error {
	folder := filepath.Join(x.dir, filesDir, r.Project)
	faults := []error{remove(filepath.Join(folder, r.Filename)), remove(filepath.Join(folder, r.Filename+metadata))}
	folders := map[string]bool{}
	for _, f := range r.Beside {
		if filepath.IsLocal(f.Path) && strings.HasPrefix(f.Path, r.Filename+".") {
			faults = append(faults, remove(filepath.Join(folder, f.Path)))
			folders[filepath.Dir(f.Path)] = true
		}
	}
	delete(folders, ".")
	for name := range folders {
		_ = os.Remove(filepath.Join(folder, name)) // stays where others have put something into it
	}
	return errors.Join(faults...)
}

// Yank says of a wheel that nobody should take it any more, and why: pip and uv
// pass it over unless its very version is asked for, and it is not taken instead
// of a build. Without a reason that is taken back. Where there is none of the key the
// error is [fs.ErrNotExist].
func (x *Index) Yank(ctx context.Context, key, because string) (Record, error) {
	free, err := x.lock(ctx)
	if err != nil {
		return Record{}, err
	}
	defer free()
	all, err := x.All(ctx)
	if err != nil {
		return Record{}, err
	}
	i := slices.IndexFunc(all, func(r Record) bool { return r.Key == key })
	if i < 0 {
		return Record{}, fs.ErrNotExist
	}
	r := all[i]
	r.Yanked = because
	return r, x.write(r, all)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
