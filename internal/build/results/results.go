// Package results remembers which cells passed, by the keys of their entries. A key
// covers everything that a build reads, so a result that is found needs neither
// engine nor network.
//
// The bytes lie in the store, which knows digests and not what they are of. Whether
// a cell passed is not judged here: run says so, and of a result from elsewhere
// whoever proves it.
package results

import (
	"context"
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
	"builder/internal/input/store"
	"builder/internal/plan/lock"
)

// Results implements [run.Finder] on a store.
type Results struct {
	store   *store.Store
	sealing *Sealing
}

var _ run.Finder = (*Results)(nil)

// New returns the results kept in s, as whoever wrote them says: to list and to
// clear away. Who decides by them asks for those that are [Results.Sealed].
func New(s *store.Store) *Results { return &Results{store: s} }

// Sealing says who signs what is kept, and whose signature counts. Note is told of a
// result that does not count.
type Sealing struct {
	Key   func() (signing.Key, error)
	Trust func() (signing.Trust, error)
	Note  func(format string, args ...any)
}

// Sealed returns the results that a trusted key signed: a store may be written to
// by others, and who can write a record must not be able to say that a cell passed.
func (r *Results) Sealed(by Sealing) *Results { return &Results{r.store, &by} }

// open returns the record in a file of the store.
func (r *Results) open(key string, data []byte) ([]byte, error) {
	if r.sealing == nil {
		return attest.PeekResult(data)
	}
	trust, err := r.sealing.Trust()
	if err != nil {
		return nil, err
	}
	return attest.OpenResult(data, key, trust)
}

// encode returns the file of a result.
func (r *Results) encode(key string, result run.Result) ([]byte, error) {
	data, err := json.Marshal(result)
	if err != nil || r.sealing == nil {
		return data, err
	}
	own, err := r.sealing.Key()
	if err != nil {
		return nil, err
	}
	return attest.Sealer{Key: own}.SealResult(key, result.Artifacts, data)
}

// Has reports whether the result of the entry with this key is known.
func (r *Results) Has(key string) bool {
	_, ok := r.read(key)
	return ok
}

// Known returns the result of the entry with this key, if it is known.
func (r *Results) Known(key string) (run.Result, bool) { return r.read(key) }

// read returns a result whose artifacts are all in the store.
func (r *Results) read(key string) (run.Result, bool) {
	data, ok := r.store.Result(key)
	if !ok {
		return run.Result{}, false
	}
	record, err := r.open(key, data)
	if err != nil {
		return run.Result{}, false
	}
	found, err := decode(record)
	if err != nil {
		return run.Result{}, false
	}
	for _, a := range files(found) {
		if _, ok := r.store.Path(blob(a)); !ok {
			return run.Result{}, false
		}
	}
	return found, true
}

// files lists the artifacts of a result and what is said about them.
func files(r run.Result) []artifact.Artifact { return slices.Concat(r.Artifacts, r.Attestations) }

func blob(a artifact.Artifact) store.Blob {
	return store.Blob{Name: filepath.Base(a.Name), Size: a.Size, SHA256: a.SHA256}
}

// Carry returns the record of a known result as it is taken to another machine,
// without the paths of this one, and the files that it names.
func (r *Results) Carry(e lock.Entry) (record []byte, artifacts []store.Blob, ok bool) {
	found, ok := r.read(e.Key())
	if !ok {
		return nil, nil, false
	}
	for _, list := range [][]artifact.Artifact{found.Artifacts, found.Attestations} {
		for i, a := range list {
			if _, err := r.store.Use(blob(a)); err != nil {
				return nil, nil, false
			}
			list[i].Path = a.Name
			artifacts = append(artifacts, blob(a))
		}
	}
	record, err := json.Marshal(found)
	return record, artifacts, err == nil
}

// Accept keeps a result that came from another machine, unless one is known, and
// reports whether it did. The files of its record must have come before it. Prove
// is given the wheel as a run would lay it out, with what is said about it beside
// it, and returns the result that follows from that: the record itself is nobody's
// word, and what prove refuses is [Unproven].
func (r *Results) Accept(key string, record []byte, prove func(wheel string) (lock.Entry, run.Result, error)) (bool, error) {
	found, err := decode(record)
	if err != nil {
		return false, fmt.Errorf("result %s: %w", key, err)
	}
	for _, a := range files(found) {
		if _, err := r.store.Use(blob(a)); err != nil {
			return false, fmt.Errorf("result %s: %w", key, err)
		}
	}
	if _, known := r.read(key); known {
		return false, nil
	}
	dir, err := os.MkdirTemp("", "builder-result-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := r.layOut(found, dir, key); err != nil {
		return false, err
	}
	e, proven, err := prove(found.Artifacts[0].Path)
	if err == nil && e.Key() != key {
		err = fmt.Errorf("it was built of another entry: key %s", e.Key())
	}
	if err != nil {
		return false, &Unproven{key, err}
	}
	return true, r.Keep(e, proven)
}

// Unproven is a result that nobody who is trusted vouches for.
type Unproven struct {
	Key string
	Err error
}

func (u *Unproven) Error() string { return "result " + u.Key + ": " + u.Err.Error() }

// Unwrap returns what is wrong with it.
func (u *Unproven) Unwrap() error { return u.Err }

// Made says of every artifact in the store, by its digest, which results name it.
func (r *Results) Made() map[string][]string {
	made := map[string][]string{}
	for _, key := range r.store.Results() {
		found, _ := r.peek(key) // what cannot be read names nothing
		for _, a := range files(found) {
			made[a.SHA256] = append(made[a.SHA256], key)
		}
	}
	return made
}

// Check reads every record with its artifacts, and forgets those that are no
// results any more.
func (r *Results) Check() error {
	var faults []error
	for _, key := range r.store.Results() {
		found, err := r.peek(key)
		for _, a := range files(found) {
			err = errors.Join(err, r.store.Verify(blob(a)))
		}
		if err != nil {
			fault := diag.Errorf(diag.Fetch, "result %s: %w", key, err).WithHint("it was removed: the next run builds the cell")
			faults = append(faults, fault, r.store.DropResult(key))
		}
	}
	return errors.Join(faults...)
}

// peek reads a record, whoever signed it.
func (r *Results) peek(key string) (run.Result, error) {
	data, _ := r.store.Result(key)
	record, err := attest.PeekResult(data)
	if err != nil {
		return run.Result{}, err
	}
	return decode(record)
}

// decode refuses what names no artifact, or one that is no plain file.
func decode(record []byte) (run.Result, error) {
	var found run.Result
	if err := json.Unmarshal(record, &found); err != nil {
		return run.Result{}, err
	}
	if len(found.Artifacts) == 0 {
		return run.Result{}, errors.New("it names no artifact")
	}
	for _, a := range files(found) {
		if !plain(a.Name) {
			return run.Result{}, fmt.Errorf("%q is not the name of a file", a.Name)
		}
	}
	return found, nil
}

// Find lays the artifacts of a known result out in dir. Their bytes are hashed
// first: a damaged file is not a result, and the cell is built again.
func (r *Results) Find(_ context.Context, e lock.Entry, dir string) (run.Result, bool, error) {
	return r.FindKey(e.Key(), dir)
}

// FindKey is Find for who knows no more of an entry than its key.
func (r *Results) FindKey(key, dir string) (run.Result, bool, error) {
	found, ok := r.read(key)
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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return run.Result{}, false, err
	}
	if err := r.layOut(found, dir, key); err != nil {
		return run.Result{}, false, err
	}
	return found, true, nil
}

// tell says why a result that lies there does not count, where nobody signed it.
func (r *Results) tell(key string) {
	data, ok := r.store.Result(key)
	if !ok || r.sealing == nil || r.sealing.Note == nil {
		return
	}
	if _, err := r.open(key, data); err != nil {
		r.sealing.Note("the result %s in the store does not count: %v", key, err)
	}
}

// Forget removes the record of a result; its files stay, nobody finds them by the
// key any more.
func (r *Results) Forget(e lock.Entry) error { return r.store.DropResult(e.Key()) }

// Keep puts the artifacts and then the result into the store, so that a result
// never names a file that is not there. A file that is no longer what the gates
// saw is an error.
func (r *Results) Keep(e lock.Entry, result run.Result) error {
	for _, a := range files(result) {
		kept, err := r.store.Import(a.Path)
		if err != nil {
			return err
		}
		if kept.SHA256 != a.SHA256 {
			return fmt.Errorf("keeping %s: the file was changed: expected sha256 %s, got %s", a.Name, a.SHA256, kept.SHA256)
		}
	}
	data, err := r.encode(e.Key(), result)
	if err != nil {
		return err
	}
	return r.store.PutResult(e.Key(), data)
}
