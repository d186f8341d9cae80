// Package results records which cells passed, by the keys of their entries. A key
// covers everything a build reads, so a known result needs neither engine nor network.
//
// The store holds the bytes, by digest only. This package does not decide whether a
// cell passed: run decides it, and package reuse for a published cell.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// Results are the results in a store.
type Results struct {
	store *store.Store
	keys  *signing.Keys // nil checks and makes no signature
}

// New returns the results in s without a check of their signatures, for listing and
// cleaning up. To decide by results, use [Signed].
func New(s *store.Store) *Results { return &Results{store: s} }

// Signed returns only the results in s signed by a key that counts for records. Others may
// have write access to a store, and a forged record must not make a cell pass.
func Signed(s *store.Store, keys signing.Keys) *Results { return &Results{s, &keys} }

// open returns the record in a result file of the store.
func (r *Results) open(key string, data []byte) ([]byte, error) {
	if r.keys == nil {
		return attest.PeekResult(data)
	}
	trust, err := r.keys.TrustedForResults()
	if err != nil {
		return nil, err
	}
	return attest.OpenResult(data, key, trust)
}

// encode returns the content of a result file.
func (r *Results) encode(key string, result run.Result) ([]byte, error) {
	data, err := json.Marshal(result)
	if err != nil || r.keys == nil {
		return data, err
	}
	own, err := r.keys.ForResults()
	if err != nil {
		return nil, err
	}
	return attest.Sealer{Key: own}.SealResult(key, result.Artifacts, data)
}

// judged returns an error for a result that other gates judged.
func judged(r run.Result) error {
	if r.Gates == gate.Digest() || r.Gates == run.Published {
		return nil
	}
	return errors.New("gates of another release of builder judged it: the gates of this one have to run")
}

// Known returns the result of the entry with this key, if the gates of this program judged
// it and the store has it with all its files.
func (r *Results) Known(key string) (run.Result, bool) {
	found, err := r.read(key)
	lacks := func(a artifact.Artifact) bool {
		_, has := r.store.Path(blob(a))
		return !has
	}
	if err != nil || judged(found) != nil || slices.ContainsFunc(files(found), lacks) {
		return run.Result{}, false
	}
	return found, true
}

// read returns the record of a result. It fails if nobody kept the result.
func (r *Results) read(key string) (run.Result, error) {
	data, _ := r.store.Documents().Get(key)
	record, err := r.open(key, data)
	if err != nil {
		return run.Result{}, err
	}
	return decode(record)
}

// files lists the artifacts and attestations of a result.
func files(r run.Result) []artifact.Artifact { return slices.Concat(r.Artifacts, r.Attestations) }

func blob(a artifact.Artifact) store.Blob {
	return store.Blob{Name: a.Name, Size: a.Size, SHA256: a.SHA256}
}

// Without removes the results with one of these files, and returns their keys. In a dry
// run it removes nothing.
func (r *Results) Without(gone []store.Kept, dryRun bool) ([]string, error) {
	keys := []string{}
	var errs []error
	for _, key := range r.store.Documents().Keys() {
		found, _ := r.read(key) // an unreadable record has no files
		if !slices.ContainsFunc(files(found), func(a artifact.Artifact) bool {
			return slices.ContainsFunc(gone, func(k store.Kept) bool { return k.SHA256 == a.SHA256 })
		}) {
			continue
		}
		keys = append(keys, key)
		if !dryRun {
			errs = append(errs, r.store.Documents().Drop(key))
		}
	}
	return keys, errors.Join(errs...)
}

// Check reads every record and verifies its artifacts. It drops invalid records and
// returns an error for each.
func (r *Results) Check() error {
	var errs []error
	for _, key := range r.store.Documents().Keys() {
		found, err := r.read(key)
		for _, a := range files(found) {
			err = errors.Join(err, r.store.Verify(blob(a)))
		}
		if err != nil {
			e := diag.Errorf(diag.Fetch, "result %s: %w", key, err).WithHint("the result was removed; the next run builds the cell again")
			errs = append(errs, e, r.store.Documents().Drop(key))
		}
	}
	return errors.Join(errs...)
}

// decode refuses a record without artifacts and one with a name that is not a plain
// file name.
func decode(record []byte) (run.Result, error) {
	var found run.Result
	if err := json.Unmarshal(record, &found); err != nil {
		return run.Result{}, err
	}
	if len(found.Artifacts) == 0 {
		return run.Result{}, errors.New("it lists no artifact")
	}
	for _, a := range files(found) {
		if !attest.PlainName(a.Name) {
			return run.Result{}, fmt.Errorf("%q is not a file name", a.Name)
		}
	}
	return found, nil
}

// Find copies the artifacts of a known result into dir. It checks their digests first.
// With a damaged file the result does not count and the cell is built again.
func (r *Results) Find(key, dir string) (run.Result, bool, error) {
	found, ok := r.Known(key)
	if !ok {
		r.tell(key)
		return run.Result{}, false, nil
	}
	for _, a := range files(found) {
		if r.store.Verify(blob(a)) != nil {
			return run.Result{}, false, nil
		}
		if _, err := r.store.Use(blob(a)); err != nil {
			return run.Result{}, false, nil
		}
	}
	if err := r.layOut(found, dir, key); err != nil {
		return run.Result{}, false, err
	}
	return found, true, nil
}

// tell reports why a result in the store does not count, such as a missing signature or
// verdicts of other gates.
func (r *Results) tell(key string) {
	data, ok := r.store.Documents().Get(key)
	if !ok || r.keys == nil {
		return
	}
	record, err := r.open(key, data)
	if err == nil {
		if found, broken := decode(record); broken == nil {
			err = judged(found)
		}
	}
	if errors.Is(err, signing.ErrStranger) {
		err = fmt.Errorf("%w; in the store only the key of this host or of --key counts, and no key of --trust", err)
	}
	if err != nil {
		r.keys.Note("ignoring result %s in the store: %v", key, err)
	}
}

// Forget removes the record of a result. Its files stay in the store.
func (r *Results) Forget(e lock.Entry) error { return r.store.Documents().Drop(e.Key()) }

// Keep stores the artifacts and then the result, so a stored result never lacks a file.
// It returns an error if a file changed after the gates checked it.
func (r *Results) Keep(e lock.Entry, result run.Result) error {
	for _, a := range files(result) {
		kept, err := r.store.Import(a.Path)
		if err != nil {
			return err
		}
		if kept.SHA256 != a.SHA256 {
			return fmt.Errorf("keeping %s: the file changed after its gates: expected sha256 %s, got %s", a.Name, a.SHA256, kept.SHA256)
		}
	}
	data, err := r.encode(e.Key(), result)
	if err != nil {
		return err
	}
	return r.store.Documents().Put(e.Key(), data)
}

// layOut copies the artifacts of a result into dir, and its attestations into the
// attestation folder of the first artifact. Other attestations of the same bytes, such
// as those of GPU gates, stay.
func (r *Results) layOut(found run.Result, dir, key string) error {
	said := attest.Dir(filepath.Join(dir, found.Artifacts[0].Name))
	if have, err := artifact.Of(filepath.Join(dir, found.Artifacts[0].Name), ""); err != nil || have.SHA256 != found.Artifacts[0].SHA256 {
		if err := os.RemoveAll(said); err != nil {
			return err
		}
	}
	for in, files := range map[string][]artifact.Artifact{dir: found.Artifacts, said: found.Attestations} {
		for i, a := range files {
			to := filepath.Join(in, a.Name)
			a.Path, _ = r.store.Path(blob(a))
			if err := artifact.Put(a, to); err != nil {
				return err
			}
			files[i].Path, files[i].Key = to, key
		}
	}
	return nil
}
