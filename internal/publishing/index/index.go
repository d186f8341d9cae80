// Package index keeps published wheels in a directory. Any web server, and any tool
// that copies directories, can serve it as an index of Python packages: pages by PEP
// 503, metadata by PEP 658, hashes for every file.
//
//	simple/<project>/index.html                 read by pip and uv
//	files/<project>/<wheel>                     the wheel, its .metadata, the files
//	                                            made beside it and the statements
//	files/<project>/<archive>                   the same for an archive, which has no
//	                                            metadata and no place in simple/
//	files/<project>/<wheel>.record.json         the record of the wheel
//	keys/<key>.json                             the wheel of a cell
//	index.html, index.json                      for users and for builder
//
// The index writes files before the pages that link them, and each file atomically, so
// readers never find a half-finished publication. Names in the directory are checked
// before use, because its contents are untrusted.
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

// Folders of an index, and suffixes of file names.
const (
	simpleDir = "simple"
	filesDir  = "files"
	keysDir   = "keys"
	metadata  = ".metadata"
	recordEnd = ".record.json"
	listFile  = "index.json"
)

// An Index is a directory.
type Index struct {
	reader
	dir string
}

// Open returns the index in dir. Reading creates nothing. The first publication creates
// missing directories.
func Open(dir string) *Index {
	return &Index{reader{
		name:  "file:" + dir,
		place: func(file string) store.Place { return store.Place(filepath.Join(dir, filepath.FromSlash(file))) },
		fetch: func(_ context.Context, _ artifact.Artifact, from store.Place) (string, error) {
			return string(from), nil
		},
	}, dir}
}

// Where returns the address of a record: for a wheel that of the index, for pip and uv, and
// for an archive that of the file.
func (x *Index) Where(r Record) string {
	if r.IsWheel() {
		return "file://" + filepath.Join(x.dir, simpleDir) + "/"
	}
	return "file://" + filepath.Join(x.dir, filesDir, r.Project, r.Filename)
}

// List lists every record, by project and file name. The error joins all unreadable
// records. The others are returned as well.
func (x *Index) List(ctx context.Context) ([]Record, error) {
	paths, err := fs.Glob(os.DirFS(x.dir), path.Join(filesDir, "*", "*"+recordEnd))
	errs := []error{err}
	var all []Record
	for _, path := range paths {
		r, err := x.read(ctx, filepath.Join(x.dir, path))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, byName)
	return all, errors.Join(errs...)
}

func byName(a, b Record) int {
	return cmp.Or(strings.Compare(a.Project, b.Project), strings.Compare(a.Filename, b.Filename))
}

// maxRecord limits the size of one record, in bytes.
const maxRecord = 4 << 20

// read reads a record. It refuses a record with names of other files.
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
		err = fmt.Errorf("it holds the record of %s", r.Filename)
	}
	if err != nil {
		return Record{}, diag.Errorf(diag.Publish, "%s: %w", path, err).WithHint("restore the file from a copy. Without it the index forgets the wheel's channels, its yank and the gates of other hosts: remove the file, publish the wheel with all statements, then promote and yank it again.")
	}
	return r, nil
}
