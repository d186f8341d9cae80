// Package index keeps published wheels in a directory that any web server, or any
// tool that copies directories, makes an index of Python packages of: pages by PEP
// 503 and PEP 691, metadata by PEP 658, hashes everywhere.
//
//	simple/<project>/index.html, index.json     what pip and uv read
//	files/<project>/<wheel>                     the wheel, its .metadata, what was
//	                                            made beside it and what was said
//	files/<project>/<archive>                   the same of an archive, which has no
//	                                            metadata and no place in simple/
//	files/<project>/<wheel>.record.json         what is known of it here
//	keys/<key>.json                             the wheel of a cell
//	index.html, index.json                      for people and for builder
//
// Files come before the pages that name them, and each is seen whole or not at
// all, so that a reader never meets half a publication. Names in the directory are
// checked before they are used: whoever can write it is not trusted with more.
package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// The folders of an index, and the ends of names in them.
const (
	simpleDir = "simple"
	filesDir  = "files"
	keysDir   = "keys"
	metadata  = ".metadata"
	recordEnd = ".record.json"
	listFile  = "index.json"
)

// An Index is a directory.
type Index struct{ dir string }

// Open returns the index in dir. Reading makes nothing; what is missing is made by
// the first publication.
func Open(dir string) *Index { return &Index{dir} }

// URL returns the address that pip and uv take as --index-url.
func (x *Index) URL() string { return "file://" + filepath.Join(x.dir, simpleDir) + "/" }

// Where returns where a record is to be had: of a wheel the address of the index,
// of an archive that of the file.
func (x *Index) Where(r Record) string {
	if r.IsWheel() {
		return x.URL()
	}
	return "file://" + filepath.Join(x.dir, filesDir, r.Project, r.Filename)
}

// lock holds other publishers out.
func (x *Index) lock(ctx context.Context) (free func(), err error) {
	if err := os.MkdirAll(x.dir, 0o755); err != nil {
		return nil, failed(err, "opening the index")
	}
	free, err = store.Lock(ctx, filepath.Join(x.dir, ".lock"), func() {})
	if err != nil && ctx.Err() != nil {
		return nil, err // an interruption is nobody's fault
	}
	return free, failed(err, "opening the index")
}

// Find returns the record of the cell with a key; where there is none the error
// is [fs.ErrNotExist].
func (x *Index) Find(ctx context.Context, key string) (Record, error) {
	if !hexKey.MatchString(key) {
		return Record{}, fs.ErrNotExist
	}
	data, err := store.Small(ctx, store.Place(filepath.Join(x.dir, keysDir, key+".json")), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return parse(data, key)
}

// All lists every record, by project, version and name. All that cannot be read
// is told together; the others are returned too.
func (x *Index) All(ctx context.Context) ([]Record, error) {
	paths, err := fs.Glob(os.DirFS(x.dir), path.Join(filesDir, "*", "*"+recordEnd))
	faults := []error{err}
	var all []Record
	for _, path := range paths {
		r, err := x.read(ctx, filepath.Join(x.dir, path))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, byName)
	return all, errors.Join(faults...)
}

func byName(a, b Record) int {
	return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Filename, b.Filename))
}

// maxRecord bounds what is read of one record, in bytes.
const maxRecord = 4 << 20

// read reads a record and refuses one whose names lead elsewhere, to the file of
// another too.
func (x *Index) read(ctx context.Context, path string) (Record, error) {
	data, err := store.Small(ctx, store.Place(path), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	var r Record
	if err == nil {
		r, err = parse(data, "")
	}
	if err == nil && x.recordPath(r.Project, r.Filename) != path {
		err = fmt.Errorf("it is the record of %s", r.Filename)
	}
	if err != nil {
		return Record{}, diag.Errorf(diag.Publish, "%s: %w", path, err).WithHint("restore the file, or remove it and publish its wheel again")
	}
	return r, nil
}

// Take copies the wheel of a record and all that goes with it into dir, as far as vet
// admits it, and checks every digest.
func (x *Index) Take(ctx context.Context, r Record, dir string, vet Vet) (artifact.Artifact, error) {
	where := func(f File) string { return filepath.Join(x.dir, filesDir, r.Project, f.Path) }
	return r.take(ctx, dir, vet, func(f File) store.Place { return store.Place(where(f)) },
		func(a artifact.Artifact) (string, error) { return where(below(dir, a)), nil })
}
