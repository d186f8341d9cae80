package index

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// Remote is a read-only index served by a web server.
type Remote struct {
	base  string
	store *store.Store
}

// OpenRemote returns the index at an http or https address. It fetches files through s,
// which resumes, retries and checks digests.
func OpenRemote(base string, s *store.Store) Remote {
	return Remote{strings.TrimSuffix(base, "/") + "/", s}
}

// Find returns the record with the given key, or [fs.ErrNotExist].
func (r Remote) Find(ctx context.Context, key string) (Record, error) {
	if !hexKey.MatchString(key) {
		return Record{}, fs.ErrNotExist
	}
	data, err := store.Small(ctx, store.Place(r.base+keysDir+"/"+key+".json"), maxRecord)
	if err != nil {
		return Record{}, err
	}
	return parse(data, key)
}

// maxList limits the list of an index, in bytes. It allows for about ten thousand
// wheels.
const maxList = 64 << 20

// All lists every record.
func (r Remote) All(ctx context.Context) ([]Record, error) {
	data, err := store.Small(ctx, store.Place(r.base+listFile), maxList)
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

// Take copies the wheel of a record and its other files to dir, as far as vet admits
// them.
func (r Remote) Take(ctx context.Context, record Record, dir string, vet Vet) (artifact.Artifact, error) {
	where := func(f File) store.Place {
		escaped := (&url.URL{Path: filesDir + "/" + record.Project + "/" + f.Path}).EscapedPath()
		return store.Place(r.base + strings.ReplaceAll(escaped, "+", "%2B"))
	}
	return record.take(ctx, dir, vet, where, func(a artifact.Artifact) (string, error) {
		return r.store.Fetch(ctx, store.Blob{Name: a.Name, Size: a.Size, SHA256: a.SHA256}, []store.Place{where(below(dir, a))}, nil)
	})
}
