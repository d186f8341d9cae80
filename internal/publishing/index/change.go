package index

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// without returns the records except the one of r's file.
func without(all []Record, r Record) []Record {
	return slices.DeleteFunc(slices.Clone(all), r.sameFile)
}

// write stores the record and rewrites the pages from all records.
func (x *Index) write(r Record, all []Record) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := putBytes(x.recordPath(r.Project, r.Filename), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	if err := putBytes(filepath.Join(x.dir, keysDir, r.Key+".json"), data); err != nil {
		return failed(err, "publishing %s", r.Filename)
	}
	return x.pages(append(without(all, r), r), r.Project)
}

func (x *Index) recordPath(project, filename string) string {
	return filepath.Join(x.dir, filesDir, project, filename+recordEnd)
}

// Withdraw removes the wheel with a key from the pages, then its files. A missing wheel is
// not an error.
func (x *Index) Withdraw(ctx context.Context, key string) error {
	free, err := x.lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	all, err := x.List(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(r Record) bool { return r.Key == key })
	if i < 0 {
		return nil
	}
	r := all[i]
	if err := errors.Join(remove(x.recordPath(r.Project, r.Filename)), remove(filepath.Join(x.dir, keysDir, r.Key+".json"))); err != nil {
		return failed(err, "withdrawing %s", r.Filename)
	}
	all = without(all, r)
	if err := x.pages(all, r.Project); err != nil {
		return err
	}
	return failed(x.removeFiles(r, all), "removing the files of %s", r.Filename)
}

// removeFiles removes a wheel and the files beside it, except those that a remaining
// record lists: wheels of one cell share files.
func (x *Index) removeFiles(r Record, left []Record) error {
	shared := map[string]bool{}
	for _, other := range left {
		for _, f := range other.Beside {
			shared[other.Project+"/"+f.Path] = true
		}
	}
	folder := filepath.Join(x.dir, filesDir, r.Project)
	errs := []error{remove(filepath.Join(folder, r.Filename)), remove(filepath.Join(folder, r.Filename+metadata))}
	folders := map[string]bool{}
	for _, f := range r.Beside {
		if filepath.IsLocal(f.Path) && !shared[r.Project+"/"+f.Path] {
			errs = append(errs, remove(filepath.Join(folder, f.Path)))
			folders[filepath.Dir(f.Path)] = true
		}
	}
	delete(folders, ".")
	for name := range folders {
		_ = os.Remove(filepath.Join(folder, name)) // a folder with other files stays
	}
	return errors.Join(errs...)
}

// Yank marks a wheel as withdrawn, with a reason. pip and uv then skip it unless a
// requirement names its exact version, and builder does not take it in place of a
// build. An empty reason removes the mark. Yank returns [fs.ErrNotExist] if no wheel
// has the key.
func (x *Index) Yank(ctx context.Context, key, because string) (Record, error) {
	free, err := x.lock(ctx)
	if err != nil {
		return Record{}, err
	}
	defer free()
	all, err := x.List(ctx)
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
