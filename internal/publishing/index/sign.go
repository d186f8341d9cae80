package index

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/store"
)

// SignatureFile is the signature over the whole index, a Sigstore bundle.
const SignatureFile = "index.sigstore.json"

// maxSignature limits the signature, in bytes. It allows for some ten thousand wheels.
const maxSignature = 64 << 20

// A Signer signs each state of an index, if the state before was signed by a trusted key.
type Signer struct {
	Key    func() (signing.Key, error)
	Trust  signing.Trust
	Memory signing.Memory
}

// indexStatement is an in-toto statement about every file of an index.
type indexStatement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     struct {
		Made time.Time `json:"made"`
	} `json:"predicate"`
}

type subject struct {
	Name        string            `json:"name"` // path below the index
	Digest      map[string]string `json:"digest"`
	Annotations struct {
		Size int64 `json:"size"` // bytes
	} `json:"annotations"`
}

const (
	inToto    = "https://in-toto.io/Statement/v1"
	indexType = "urn:builder:index:v1"
)

// A State is a signed state of an index.
type State struct {
	By    signing.PublicKey
	Made  time.Time
	Files map[string]File // by path below the index
}

// openState reads a signature. Only keys with the role of a publisher count.
func openState(data []byte, trust signing.Trust) (State, error) {
	signed, err := trust.Open(data)
	if err != nil {
		return State{}, err
	}
	var s indexStatement
	if err := json.Unmarshal(signed.Statement, &s); err != nil {
		return State{}, err
	}
	if s.Type != inToto || s.PredicateType != indexType {
		return State{}, fmt.Errorf("the signature is about a %.100q", s.PredicateType)
	}
	by, _ := trust.Find(signed.KeyID)
	if !by.Grant.May(signing.Publisher) {
		return State{}, fmt.Errorf("it is signed by %s, which %s limits: it does not have the role %s", by, by.Grant.File, signing.Publisher)
	}
	state := State{by, s.Predicate.Made, map[string]File{}}
	for _, x := range s.Subject {
		f := File{x.Name, x.Digest["sha256"], x.Annotations.Size}
		if !fs.ValidPath(f.Path) || !hexKey.MatchString(f.SHA256) || f.Size < 0 {
			return State{}, fmt.Errorf("it names %.300q with sha256 %.100q and %d bytes", f.Path, f.SHA256, f.Size)
		}
		state.Files[f.Path] = f
	}
	return state, nil
}

// memorable returns the name of a place in the memory of a host.
func memorable(place string) string { return "index " + strings.TrimRight(place, "/") }

// unsigned reports whether the index has no signature, and this host has seen none.
func (x *Index) unsigned() bool {
	_, err := os.Lstat(filepath.Join(x.dir, SignatureFile))
	return errors.Is(err, fs.ErrNotExist) && (x.Signer == nil || !x.Signer.Memory.Has(memorable(x.dir)))
}

// continues returns an error unless pages and records are those of the signed state before
// a change. Wheels keep their signed digests, so a changed one stays refused.
func (x *Index) continues() error {
	if err := x.asSigned(); err != nil {
		return diag.Errorf(diag.Publish, "changing %s: %w", x.dir, err).
			WithHint("find out who changed the index; after an interrupted publication, `builder publish sign --at file:%s` verifies every wheel and signs again", x.dir)
	}
	if x.unsigned() {
		return nil
	}
	return x.Signer.may()
}

func (x *Index) asSigned() error {
	if x.unsigned() {
		return nil
	}
	if x.Signer == nil {
		return errors.New("the index is signed, and there is no key to sign the change")
	}
	data, err := os.ReadFile(filepath.Join(x.dir, SignatureFile))
	var s State
	if err == nil {
		s, err = openState(data, x.Signer.Trust)
	}
	if err == nil {
		err = x.Signer.Memory.Newest(memorable(x.dir), s.Made)
	}
	if err != nil {
		return err
	}
	wrong, err := x.unlike(s, isOwn)
	if len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return err
}

// may returns an error unless signatures of the signer's own key count as those of a
// publisher. A signature by another key would make every later verification fail.
func (s *Signer) may() error {
	key, err := s.Key()
	if err != nil {
		return err
	}
	id := key.Public().ID
	of, trusted := s.Trust.Find(id)
	if trusted && of.Grant.May(signing.Publisher) || key.Certified() {
		return nil
	}
	return diag.Errorf(diag.Usage, "signing the index: your key %s is not trusted in the role %s", id, signing.Publisher).
		WithHint("sign with the publisher's key: --key FILE. Nothing was changed")
}

// changedRecords returns the records that differ from the last signed state, or are
// missing. There are none if the last signature is missing or not trusted.
func (x *Index) changedRecords() ([]string, error) {
	data, err := os.ReadFile(filepath.Join(x.dir, SignatureFile))
	if err != nil {
		return nil, nil
	}
	s, err := openState(data, x.Signer.Trust)
	if err != nil {
		return nil, nil
	}
	wrong, err := x.unlike(s, func(name string) bool {
		_, signed := s.Files[name]
		return signed && strings.HasSuffix(name, recordEnd)
	})
	return wrong, err
}

// seal signs the state with these records. It changes nothing in an unsigned index.
func (x *Index) seal(all []Record) error {
	if x.unsigned() {
		return nil
	}
	err := x.sign(all)
	if err != nil {
		err = diag.Errorf(diag.Publish, "signing the index: %w", err).
			WithHint("the change was made, but the index is not signed: run `builder publish sign --at file:%s`", x.dir)
	}
	return err
}

func (x *Index) sign(all []Record) error {
	s := indexStatement{Type: inToto, PredicateType: indexType}
	s.Predicate.Made = time.Now().UTC()
	files := map[string]File{}
	for _, r := range all {
		folder := path.Join(filesDir, r.Project)
		for _, f := range append([]File{{r.Filename, r.SHA256, r.Size}}, r.Beside...) {
			name := path.Join(folder, f.Path)
			files[name] = File{name, f.SHA256, f.Size}
		}
	}
	// Pages and records have no stated digest. The lock excludes other writers.
	for name := range ownFiles(all) {
		a, err := artifact.Unlinked(filepath.Join(x.dir, name), "")
		if errors.Is(err, fs.ErrNotExist) { // a project of archives has no pages
			continue
		}
		if err != nil {
			return err
		}
		files[name] = File{name, a.SHA256, a.Size}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		of := subject{Name: name, Digest: map[string]string{"sha256": files[name].SHA256}}
		of.Annotations.Size = files[name].Size
		s.Subject = append(s.Subject, of)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	key, err := x.Signer.Key()
	if err != nil {
		return err
	}
	signed, err := signing.Sign(key, data)
	if err != nil {
		return err
	}
	if err := x.Signer.Memory.Newest(memorable(x.dir), s.Predicate.Made); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(x.dir, SignatureFile), signed)
}

// ownFiles returns the files that builder makes for an index with these records: pages,
// records, metadata and keys.
func ownFiles(all []Record) map[string]bool {
	own := map[string]bool{}
	add := func(dir string) { own[path.Join(dir, "index.html")], own[path.Join(dir, listFile)] = true, true }
	add("")
	add(simpleDir)
	for _, r := range all {
		at := path.Join(filesDir, r.Project, r.Filename)
		own[at+recordEnd], own[path.Join(keysDir, r.Key+".json")] = true, true
		if r.IsWheel() {
			own[at+metadata] = true
		}
		add(path.Join(simpleDir, r.Project))
	}
	return own
}

// isOwn reports whether a file has a name that builder gives to one of its own.
func isOwn(name string) bool {
	return !strings.HasPrefix(name, filesDir+"/") || strings.HasSuffix(name, recordEnd) || strings.HasSuffix(name, metadata)
}

// listing lists the files of the index by their paths, without the signature and
// temporary files. Other files beside its folders, such as a log, do not belong to it.
func (x *Index) listing() (names []string, err error) {
	for _, name := range []string{"index.html", listFile, simpleDir, filesDir, keysDir} {
		err := fs.WalkDir(os.DirFS(x.dir), name, func(name string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !e.IsDir() && !atomicfile.IsTemp(path.Base(name)) {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// unlike returns the files that differ from a signed state, of those that wanted chooses.
func (x *Index) unlike(s State, wanted func(name string) bool) (wrong []string, err error) {
	names, err := x.listing()
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, name := range names {
		if here[name] = true; !wanted(name) {
			continue
		}
		a, err := artifact.Unlinked(filepath.Join(x.dir, name), "")
		switch want, ok := s.Files[name]; {
		case !ok:
			wrong = append(wrong, name+" is not signed")
		case err != nil:
			wrong = append(wrong, err.Error())
		case a.SHA256 != want.SHA256:
			wrong = append(wrong, fmt.Sprintf("%s has sha256 %s, the signature states %s", name, a.SHA256, want.SHA256))
		}
	}
	for name := range s.Files {
		if !here[name] && wanted(name) {
			wrong = append(wrong, name+" is missing")
		}
	}
	slices.Sort(wrong)
	return wrong, nil
}

// Sign signs an index that has no signature, or whose signature does not cover its state.
// Each record must pass vet, which verifies the statements about its wheel. Sign writes
// all pages again, and hashes all files. It makes no index in a directory without one.
func (x *Index) Sign(ctx context.Context, vet func(Record) error) (State, error) {
	if _, err := os.Stat(filepath.Join(x.dir, simpleDir)); errors.Is(err, fs.ErrNotExist) {
		return State{}, diag.Errorf(diag.Usage, "signing the index: %s holds no index", x.dir).WithHint("publish a wheel there first: builder publish FILE --to file:%s", x.dir)
	}
	if err := x.Signer.may(); err != nil {
		return State{}, err
	}
	free, err := x.lockOnly(ctx)
	if err != nil {
		return State{}, err
	}
	defer free()
	changed, err := x.changedRecords()
	if err != nil {
		return State{}, failed(err, "signing the index")
	}
	if len(changed) > 0 {
		return State{}, diag.Errorf(diag.Publish, "signing the index: it was changed since it was signed: %s", strings.Join(changed, "; ")).
			WithHint("restore these files. Only if an interrupted yank, promotion or publication of yours changed them, remove %s and sign again", filepath.Join(x.dir, SignatureFile))
	}
	before, err := os.ReadFile(filepath.Join(x.dir, SignatureFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return State{}, failed(err, "signing the index")
	}
	all, err := x.All(ctx)
	errs := []error{err}
	var projects []string
	for _, r := range all {
		errs, projects = append(errs, vet(r)), append(projects, r.Project)
	}
	if err := errors.Join(errs...); err != nil {
		return State{}, err
	}
	if err := x.pagesOnly(all, projects...); err != nil {
		return State{}, err
	}
	if err := x.sign(all); err != nil {
		return State{}, failed(err, "signing the index")
	}
	s, wrong, err := Signed(ctx, store.Place(x.dir), x.Signer.Trust, x.Signer.Memory)
	if err == nil && len(wrong) > 0 {
		err = diag.Errorf(diag.Publish, "signing the index: %s", strings.Join(wrong, "; ")).WithHint("remove or restore these files, and sign again")
	}
	switch {
	case err != nil && before == nil:
		err = errors.Join(err, remove(filepath.Join(x.dir, SignatureFile)))
	case err != nil: // a refusal takes no signature away
		err = errors.Join(err, atomicfile.Write(filepath.Join(x.dir, SignatureFile), before))
	}
	return s, err
}

// Signed compares the index at a place with its signature, and returns the differences.
// The memory of this host refuses an older state. Of an index behind a web server it
// reads pages and records. It does not read the wheels: installers compare them with the
// digests in these pages.
func Signed(ctx context.Context, place store.Place, trust signing.Trust, memory signing.Memory) (s State, wrong []string, err error) {
	at := strings.TrimRight(string(place), "/")
	remote := strings.HasPrefix(at, "http://") || strings.HasPrefix(at, "https://")
	data, err := store.Small(ctx, store.Place(at+"/"+SignatureFile), maxSignature)
	if err != nil {
		return s, nil, err
	}
	if s, err = openState(data, trust); err != nil {
		return s, nil, err
	}
	if err := memory.Newest(memorable(at), s.Made); err != nil {
		return s, nil, err
	}
	if !remote {
		wrong, err = Open(at).unlike(s, func(string) bool { return true })
		return s, wrong, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		// pip reads the requirements file from there before it knows any digest.
		if !isOwn(name) && !strings.HasSuffix(name, ".requirements.txt") {
			continue
		}
		escaped := strings.ReplaceAll((&url.URL{Path: name}).EscapedPath(), "+", "%2B")
		data, err := store.Small(ctx, store.Place(at+"/"+escaped), s.Files[name].Size)
		sum := sha256.Sum256(data)
		switch {
		case ctx.Err() != nil:
			return s, nil, context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, name+" is missing")
		case err != nil:
			wrong = append(wrong, err.Error())
		case hex.EncodeToString(sum[:]) != s.Files[name].SHA256:
			wrong = append(wrong, fmt.Sprintf("%s has sha256 %x, the signature states %s", name, sum, s.Files[name].SHA256))
		}
	}
	return s, wrong, nil
}
