package index

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// change excludes other publishers, and stores the record that edit makes of all records.
// doing describes the change in an error without a class, such as one of the disk.
func (x *Index) change(ctx context.Context, doing string, edit func(all []Record) (Record, error)) (r Record, err error) {
	defer func() {
		if _, ours := errors.AsType[*diag.Error](err); err != nil && !ours && ctx.Err() == nil {
			err = diag.Errorf(diag.Publish, "%s: %w", doing, err)
		}
	}()
	if err := os.MkdirAll(x.dir, 0o755); err != nil {
		return r, err
	}
	free, err := store.Lock(ctx, filepath.Join(x.dir, ".lock"), func() {})
	if err != nil {
		return r, err
	}
	defer free()
	all, err := x.List(ctx)
	if err != nil { // fail before any change: the pages need all records
		return r, err
	}
	if r, err = edit(all); err != nil {
		return r, err
	}
	return r, x.write(r, all)
}

// write stores the record and rewrites the pages from all records.
func (x *Index) write(r Record, all []Record) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	for _, path := range []string{x.recordPath(r.Project, r.Filename), filepath.Join(x.dir, keysDir, r.Key+".json")} {
		if err := putBytes(path, data); err != nil {
			return err
		}
	}
	others := slices.DeleteFunc(slices.Clone(all), r.sameFile)
	return x.pages(append(others, r), r.Project)
}

func (x *Index) recordPath(project, filename string) string {
	return filepath.Join(x.dir, filesDir, project, filename+recordEnd)
}

// Yank marks a wheel as withdrawn, with a reason. pip and uv then skip it unless a
// requirement names its exact version, and builder does not take it in place of a
// build. An empty reason removes the mark. Yank returns [fs.ErrNotExist] if no wheel
// has the key.
func (x *Index) Yank(ctx context.Context, key, because string) (Record, error) {
	return x.change(ctx, "yanking the wheel with the key "+key, func(all []Record) (Record, error) {
		i := slices.IndexFunc(all, func(r Record) bool { return r.Key == key })
		if i < 0 {
			return Record{}, fs.ErrNotExist
		}
		r := all[i]
		r.Yanked = because
		return r, nil
	})
}

// putBytes writes data to a path, unless the same bytes are already there.
func putBytes(to string, data []byte) error {
	if have, err := artifact.Of(to, ""); err == nil && have.SHA256 == regular.Sum(data) {
		return nil
	}
	return atomicfile.Write(to, data)
}
