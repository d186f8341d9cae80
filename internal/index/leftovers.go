package index

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// sweep removes what publishers have left who were killed, where the publication of
// a wheel writes: hidden files that no page names. Nobody else writes while the
// index is locked.
func (x *Index) sweep(project, filename string) error {
	var faults []error
	for _, folder := range []string{
		".", keysDir, simpleDir, path.Join(simpleDir, project), path.Join(filesDir, project), path.Join(filesDir, project, filename+".*"),
	} {
		left, err := fs.Glob(os.DirFS(x.dir), path.Join(folder, ".*.tmp"))
		faults = append(faults, err)
		for _, name := range left {
			faults = append(faults, remove(filepath.Join(x.dir, name)))
		}
	}
	return errors.Join(faults...)
}
