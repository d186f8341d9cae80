package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// A reader takes cells from an index, in a directory or at an address.
type reader struct {
	name  string                        // as users write it
	place func(file string) store.Place // of a file of the index, with slashes
	fetch func(ctx context.Context, a artifact.Artifact, from store.Place) (path string, err error)
}

// String returns the index as users write it.
func (x reader) String() string { return x.name }

// Find returns the record with the given key, or [fs.ErrNotExist].
func (x reader) Find(ctx context.Context, key string) (Record, error) {
	if !hexKey.MatchString(key) {
		return Record{}, fs.ErrNotExist
	}
	data, err := store.Small(ctx, x.place(keysDir+"/"+key+".json"), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return parse(data, key)
}

// ErrYanked means that the publisher withdrew the publication.
var ErrYanked = errors.New("it was yanked")

// ErrNotPublished means that a place has no publication under a key.
var ErrNotPublished = errors.New("it is not published there")

// Bring copies the publication of a key to dir, and returns the path of the wheel. It
// returns [ErrNotPublished] or [ErrYanked] if it may not be taken.
func (x reader) Bring(ctx context.Context, key, dir string, vet Vet) (string, error) {
	r, err := x.Find(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNotPublished
	}
	if err == nil && r.Yanked != "" {
		err = fmt.Errorf("%w: %s", ErrYanked, r.Yanked)
	}
	if err != nil {
		return "", err
	}
	wheel, err := x.Take(ctx, r, dir, vet)
	return wheel.Path, err
}

// A Vet decides which files to take from a source. offered holds the artifact first,
// then the files made with it. said holds the statements about the artifact, already
// copied to this host. It returns the offered files with the sizes they may have, or an
// error if none may be taken.
type Vet func(offered, said []artifact.Artifact) ([]artifact.Artifact, error)

// Limits of the statements taken before a vet runs.
const (
	maxStatements = 256
	maxSaid       = 128 << 20 // bytes of all statements
)

// Bring brings the statements about an artifact, and then the files admitted by vet. get
// brings a file to its path and checks its digest.
func Bring(offered, said []artifact.Artifact, vet Vet, get func(artifact.Artifact) error) error {
	if len(said) > maxStatements {
		return fmt.Errorf("the source lists %d statements, the limit is %d", len(said), maxStatements)
	}
	left := int64(maxSaid)
	for _, a := range said {
		if left -= a.Size; a.Size <= 0 || left < 0 { // nobody has verified the size yet
			return fmt.Errorf("%s: the source lists %d bytes, the limit is %d for all statements", a.Name, a.Size, maxSaid)
		}
		if err := get(a); err != nil {
			return err
		}
	}
	admitted, err := vet(offered, said)
	if err != nil {
		return err
	}
	for _, a := range admitted {
		if err := get(a); err != nil {
			return err
		}
	}
	return nil
}

// Take copies the files of a record to dir: first the statements about the wheel, then
// the files admitted by vet. It checks every digest.
func (x reader) Take(ctx context.Context, r Record, dir string, vet Vet) (artifact.Artifact, error) {
	wheel := artifact.Artifact{Name: r.Filename, Path: filepath.Join(dir, r.Filename), SHA256: r.SHA256, Size: r.Size, Key: r.Key}
	offered, said := []artifact.Artifact{wheel}, []artifact.Artifact(nil)
	for _, f := range r.Beside {
		if !filepath.IsLocal(f.Path) {
			return wheel, fmt.Errorf("taking %s: %q is outside its folder", r.Filename, f.Path)
		}
		a := artifact.Artifact{Name: f.Path, Path: filepath.Join(dir, f.Path), SHA256: f.SHA256, Size: f.Size, Key: r.Key}
		if strings.HasPrefix(f.Path, r.Filename+".") && path.Dir(f.Path) != "." {
			a.Name = path.Base(f.Path)
			said = append(said, a)
		} else {
			offered = append(offered, a)
		}
	}
	return wheel, Bring(offered, said, vet, func(a artifact.Artifact) error {
		rel, err := filepath.Rel(dir, a.Path)
		fetched := a
		if err == nil {
			fetched.Path, err = x.fetch(ctx, a, x.place(path.Join(filesDir, r.Project, filepath.ToSlash(rel))))
		}
		if err == nil {
			err = artifact.Put(fetched, a.Path)
		}
		if err != nil {
			return fmt.Errorf("taking %s: %w", r.Filename, err)
		}
		return nil
	})
}

// Remote is a read-only index served by a web server.
type Remote struct{ reader }

// OpenRemote returns the index at an http or https address. It fetches files through s,
// which resumes, retries and checks digests.
func OpenRemote(base string, s *store.Store) Remote {
	at := strings.TrimSuffix(base, "/") + "/"
	return Remote{reader{
		name: store.Redact(base),
		place: func(file string) store.Place {
			escaped := (&url.URL{Path: file}).EscapedPath()
			return store.Place(at + strings.ReplaceAll(escaped, "+", "%2B"))
		},
		fetch: func(ctx context.Context, a artifact.Artifact, from store.Place) (string, error) {
			return s.Fetch(ctx, store.Blob{Name: a.Name, Size: a.Size, SHA256: a.SHA256}, []store.Place{from}, nil)
		},
	}}
}

// maxList limits the list of an index, in bytes. It allows for about ten thousand
// wheels.
const maxList = 64 << 20

// List lists every record.
func (r Remote) List(ctx context.Context) ([]Record, error) {
	data, err := store.Small(ctx, r.place(listFile), maxList)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, diag.Errorf(diag.Fetch, "%w", err).
			WithHint("the address of an index is the one above simple/, which pip needs; does its server answer?")
	}
	var each []json.RawMessage
	if err := json.Unmarshal(data, &each); err != nil {
		return nil, diag.Errorf(diag.Fetch, "reading the list of the index: %w", err).
			WithHint("the address of an index is the one above simple/, which pip needs")
	}
	all := make([]Record, 0, len(each))
	var errs []error
	for _, text := range each {
		record, err := parse(text, "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, record)
	}
	return all, errors.Join(errs...)
}
