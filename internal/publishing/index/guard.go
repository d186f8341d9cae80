package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"builder/internal/evidence/signing"
	"builder/internal/input/store"
)

// A Guard compares records with the signatures of their indexes.
type Guard struct {
	Trust  signing.Trust
	Memory signing.Memory
}

// A Refusal is the reason why a signed index does not confirm a record.
type Refusal struct{ error }

// Unwrap returns the reason.
func (r Refusal) Unwrap() error { return r.error }

// Check returns a [Refusal] unless the signed index at a place, a directory or an address,
// has the record under its key: an older file of the key could hide a yank. An index
// that no trusted publisher signed states nothing, but if this host has seen such a
// signature there, its absence is an error.
func (g Guard) Check(ctx context.Context, at string, r Record) error {
	data, err := store.Small(ctx, store.Place(at+"/"+SignatureFile), maxSignature)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var s State
	if err == nil {
		s, err = openState(data, g.Trust)
	}
	if err != nil && !g.Memory.Has(memorable(at)) {
		return nil
	}
	if err == nil {
		err = g.Memory.Newest(memorable(at), s.Made)
	}
	if err != nil {
		return Refusal{fmt.Errorf("the signature of its index does not count: %w", err)}
	}
	if name := path.Join(keysDir, r.Key+".json"); s.Files[name].SHA256 != r.sum {
		return Refusal{fmt.Errorf("%s is not as its index was signed: if it was published or yanked a moment ago, run the command again; otherwise ask its publisher", name)}
	}
	return nil
}

// Place returns the directory of the index.
func (x *Index) Place() string { return x.dir }

// Place returns the address of the index, without a slash at the end.
func (r Remote) Place() string { return strings.TrimSuffix(r.base, "/") }
