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
