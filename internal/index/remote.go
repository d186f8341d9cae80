package index

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"builder/internal/artifact"
	"builder/internal/store"
)

// Remote is an index that a web server serves. It can be read and nothing else.
type Remote struct {
	base  string
	store *store.Store
}

// OpenRemote returns the index at an http or https address. What is taken from it
// goes through s, which resumes, tries again and checks.
func OpenRemote(base string, s *store.Store) Remote {
	return Remote{strings.TrimSuffix(base, "/") + "/", s}
}

// Find returns the record of the cell with a key; where there is none the error
// is [fs.ErrNotExist].
func (r Remote) Find(ctx context.Context, key string) (Record, error) {
	if !hexKey.MatchString(key) {
		return Record{}, fs.ErrNotExist
	}
	data, err := store.Small(ctx, store.Source(r.base+keysDir+"/"+key+".json"), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return parse(data, key)
}

// Take brings the wheel of a record and all that goes with it into dir.
func (r Remote) Take(ctx context.Context, record Record, dir string) (artifact.Artifact, error) {
	wheel := artifact.Artifact{Name: record.Filename, SHA256: record.SHA256, Size: record.Size, Key: record.Key}
	for _, f := range append(record.Beside, File{record.Filename, record.SHA256, record.Size}) {
		if !filepath.IsLocal(f.Path) {
			return wheel, fmt.Errorf("taking %s: %q leads out of its folder", record.Filename, f.Path)
		}
		escaped := (&url.URL{Path: filesDir + "/" + record.Project + "/" + f.Path}).EscapedPath()
		source := store.Source(r.base + strings.ReplaceAll(escaped, "+", "%2B"))
		path, err := r.store.Fetch(ctx, store.Blob{Name: f.Path, Size: f.Size, SHA256: f.SHA256}, []store.Source{source}, nil)
		if err != nil {
			return wheel, err
		}
		if err := put(filepath.Join(dir, f.Path), artifact.Artifact{Name: f.Path, Path: path, SHA256: f.SHA256, Size: f.Size}); err != nil {
			return wheel, fmt.Errorf("taking %s: %w", record.Filename, err)
		}
	}
	wheel.Path = filepath.Join(dir, record.Filename)
	return wheel, nil
}
