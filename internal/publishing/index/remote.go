package index

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

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
