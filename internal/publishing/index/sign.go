package index

import (
	"context"
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
	Note   func(format string, args ...any) // prints a note; may be nil
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
	return x.missing() && (x.Signer == nil || !x.Signer.Memory.Has(memorable(x.dir)))
}

// missing reports whether the directory has no signature.
func (x *Index) missing() bool {
	_, err := os.Lstat(filepath.Join(x.dir, SignatureFile))
	return errors.Is(err, fs.ErrNotExist)
}

// continues returns an error unless pages and records are those of the signed state before
// a change. Wheels keep their signed digests, so a changed one stays refused.
func (x *Index) continues() error {
	if err := x.asSigned(); errors.Is(err, signing.ErrStranger) {
		return diag.Errorf(diag.Publish, "changing %s: the signature of the index: %w", x.dir, err).
			WithHint("if it is your newer key, sign with it: --key FILE; if it is an older key of yours, or of another publisher, give the public key with --trust FILE (with a trust-root: in a trust file that it signed); compare the ids: `builder key show FILE.pub`")
	} else if err != nil {
		if _, unreadable := x.All(context.Background()); unreadable != nil {
			return unreadable // with the remedy for this record
		}
		return diag.Errorf(diag.Publish, "changing %s: %w", x.dir, err).
			WithHint("find out who changed the index; after an interrupted publication, `builder publish sign --at file:%s` verifies every wheel and signs again", x.dir)
	}
	if x.unsigned() {
		return nil
	}
	return x.Signer.may()
}

// asSigned compares pages and records with the last signature. A directory without any
// file of an index is as good as signed: somebody removed the whole index, and no record
// of it can come back.
func (x *Index) asSigned() error {
	if names, err := x.listing(); x.unsigned() || len(names) == 0 && x.missing() {
		return err
	}
	if x.Signer == nil {
		return errors.New("the index is signed, and there is no key to sign the change")
	}
	s, err := x.last()
	if err == nil {
		err = x.Signer.Memory.Newest(memorable(x.dir), s.Made)
	}
	if err != nil {
		return err
	}
	// A publication replaces damaged metadata, as it replaces a damaged wheel. The next
	// state takes its digest from the record.
	wrong, err := x.unlike(s, func(name string) bool { return isOwn(name) && !strings.HasSuffix(name, metadata) })
	if len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return err
}

// may returns an error unless signatures of the signer's own key count as those of a
// publisher. A signature by another key would make every later verification fail. A key
// without limits counts only if no trust file names the publishers: the host trusts its
// own key, and the key of --key, whoever made it.
func (s *Signer) may() error {
	key, err := s.Key()
	if err != nil || key.Certified() {
		return err
	}
	id := key.Public().ID
	of, trusted := s.Trust.Find(id)
	named := slices.IndexFunc(s.Trust.Keys, func(k signing.PublicKey) bool {
		return k.Grant.File != "" && k.Grant.May(signing.Publisher)
	})
	if trusted && of.Grant.May(signing.Publisher) && (named < 0 || of.Grant.File != "") {
		return nil
	}
	hint := "sign with the publisher's key: --key FILE. Nothing was changed"
	if named >= 0 {
		hint = fmt.Sprintf("%s names the publishers: ", s.Trust.Keys[named].Grant.File) + hint
	}
	return diag.Errorf(diag.Usage, "signing the index: your key %s is not trusted in the role %s", id, signing.Publisher).WithHint("%s", hint)
}

// follows returns an error unless the records are those of the last signature, which
// must count, or the index never had one. Records that the signature does not state may
// be there: a publication that was interrupted before its signature leaves them.
func (x *Index) follows() error {
	if x.unsigned() {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(x.dir, SignatureFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it has no signature, and this host has seen one")
	}
	if err != nil {
		return err
	}
	s, err := openState(data, x.Signer.Trust)
	if err == nil {
		err = x.Signer.Memory.Older(memorable(x.dir), s.Made)
	}
	if err != nil {
		return fmt.Errorf("its last signature does not count: %w", err)
	}
	wrong, err := x.unlike(s, func(name string) bool {
		_, signed := s.Files[name]
		return signed && strings.HasSuffix(name, recordEnd)
	})
	if len(wrong) > 0 {
		return fmt.Errorf("it was changed since it was signed: %s", strings.Join(wrong, "; "))
	}
	return err
}

// seal signs the state with these records. It changes nothing in an unsigned index, and
// keeps a signature over the same files: another publisher's key must not replace the
// first one's without a change.
func (x *Index) seal(all []Record) error {
	if x.unsigned() {
		return nil
	}
	last, unsure := x.last()
	files, err := x.state(all, last)
	if err == nil && unsure == nil && maps.Equal(last.Files, files) {
		return nil
	}
	if err == nil {
		_, err = x.sign(files)
	}
	if err != nil {
		err = diag.Errorf(diag.Publish, "signing the index: %w", err).
			WithHint("the change was made, but the index is not signed: run `builder publish sign --at file:%s`", x.dir)
	}
	return err
}

// last returns the state of the last signature, if a trusted key made it.
func (x *Index) last() (State, error) {
	data, err := os.ReadFile(filepath.Join(x.dir, SignatureFile))
	if err != nil {
		return State{}, err
	}
	return openState(data, x.Signer.Trust)
}

// listed returns the wheels of records, and the files beside them, as the records state
// them.
func listed(all []Record) map[string]File {
	files := map[string]File{}
	for _, r := range all {
		folder := path.Join(filesDir, r.Project)
		for _, f := range append([]File{{r.Filename, r.SHA256, r.Size}}, r.Beside...) {
			name := path.Join(folder, f.Path)
			files[name] = File{name, f.SHA256, f.Size}
		}
	}
	return files
}

// state returns the files of an index with these records: listed files as the records
// state them, pages and records as they are. The file of a key must be the record of a
// wheel with this key. Metadata must be that of its record: if the file is damaged, the
// last signature states it. last is empty if there is none.
func (x *Index) state(all []Record, last State) (map[string]File, error) {
	files := listed(all)
	// Pages and records have no stated digest. The lock excludes other writers.
	for name := range ownFiles(all) {
		a, err := artifact.Unlinked(filepath.Join(x.dir, name), "")
		if errors.Is(err, fs.ErrNotExist) { // a project of archives has no pages
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = File{name, a.SHA256, a.Size}
	}
	keys := map[string]string{}
	var wrong []string
	for _, r := range all {
		at := path.Join(filesDir, r.Project, r.Filename)
		if name := at + metadata; r.IsWheel() && files[name].SHA256 != r.Metadata {
			if files[name] = last.Files[name]; files[name].SHA256 != r.Metadata {
				wrong = append(wrong, name)
			}
		}
		name := path.Join(keysDir, r.Key+".json")
		if record := files[at+recordEnd].SHA256; keys[name] == "" || record == files[name].SHA256 {
			keys[name] = record
		}
	}
	for name, record := range keys {
		if files[name].SHA256 != record {
			wrong = append(wrong, name)
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		return nil, fmt.Errorf("these files are missing or differ from their records: %s", strings.Join(wrong, ", "))
	}
	return files, nil
}

// derive writes the file of a record's key again, and damaged metadata of its wheel. text
// is the METADATA of the wheel.
func (x *Index) derive(ctx context.Context, r Record, text []byte) error {
	if to := x.metadataPath(r); r.IsWheel() && !has(to, r.Metadata) {
		if hexSum(text) != r.Metadata {
			return fmt.Errorf("%s differs from its record, and so does METADATA in the wheel", filepath.Base(to))
		}
		if err := putBytes(to, text); err != nil {
			return err
		}
	}
	name := filepath.Join(x.dir, keysDir, r.Key+".json")
	if have, err := x.Find(ctx, r.Key); err == nil && !have.sameFile(r) {
		if other, err := artifact.Of(x.recordPath(have.Project, have.Filename), ""); err == nil && has(name, other.SHA256) {
			return nil // the record of another wheel with this key
		}
	}
	record, err := store.Small(ctx, store.Place(x.recordPath(r.Project, r.Filename)), maxRecord)
	if err == nil {
		err = putBytes(name, record)
	}
	return err
}

func (x *Index) metadataPath(r Record) string { return x.PathOf(r) + metadata }

// sign signs a state of the index with these files, in place of the last signature, and
// notes a change of the signer. After an error the last signature and the memory of the
// host are as before.
func (x *Index) sign(files map[string]File) (State, error) {
	s := indexStatement{Type: inToto, PredicateType: indexType}
	s.Predicate.Made = time.Now().UTC()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		of := subject{Name: name, Digest: map[string]string{"sha256": files[name].SHA256}}
		of.Annotations.Size = files[name].Size
		s.Subject = append(s.Subject, of)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return State{}, err
	}
	key, err := x.Signer.Key()
	if err != nil {
		return State{}, err
	}
	signed, err := signing.Sign(key, data)
	if err != nil {
		return State{}, err
	}
	state, err := openState(signed, x.Signer.Trust)
	if err != nil {
		return State{}, fmt.Errorf("your own signature does not count: %w", err)
	}
	if err := x.Signer.Memory.Older(memorable(x.dir), state.Made); err != nil {
		return State{}, err
	}
	if last, err := x.last(); err == nil && last.By.ID != state.By.ID && x.Signer.Note != nil {
		x.Signer.Note("the index was signed by %s, and is signed by %s from now on: its users must trust both keys", last.By, state.By)
	}
	if err := atomicfile.Write(filepath.Join(x.dir, SignatureFile), signed); err != nil {
		return State{}, err
	}
	return state, x.Signer.Memory.Newest(memorable(x.dir), state.Made)
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
			wrong = append(wrong, fmt.Sprintf("%s has sha256 %s, the index states %s", name, a.SHA256, want.SHA256))
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
// Each record must pass vet, which verifies the statements about its wheel and returns
// the wheel's METADATA. Sign writes all files again that it can make: pages, metadata and
// the files of keys. It hashes all others. It makes no index in a directory without one.
// If the last signature is missing, does not count, or states other records, anew must be
// set: whoever can write to the directory could otherwise let the publisher sign their
// records.
func (x *Index) Sign(ctx context.Context, vet func(Record) (metadata []byte, err error), anew bool) (State, error) {
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
	all, err := x.All(ctx)
	if err != nil {
		return State{}, err
	}
	if err := x.follows(); err != nil && !anew {
		return State{}, diag.Errorf(diag.Publish, "signing the index: %w", err).
			WithHint("restore the index from a copy. If you know the reason, such as an interrupted yank or promotion of yours, sign it as it is: builder publish sign --at file:%s --anew", x.dir)
	}
	var errs []error
	var projects []string
	texts := map[int][]byte{} // metadata to write again
	for i, r := range all {
		text, err := vet(r)
		if r.IsWheel() && !has(x.metadataPath(r), r.Metadata) {
			texts[i] = text
		}
		if err != nil && diag.CodeOf(err) == diag.Unexpected && ctx.Err() == nil {
			err = diag.Errorf(diag.Publish, "signing the index: %w", err).
				WithHint("restore the files of %s from a copy, or publish the cell again", r.Filename)
		}
		errs, projects = append(errs, err), append(projects, r.Project)
	}
	if err := errors.Join(errs...); err != nil {
		return State{}, err
	}
	if err := x.agrees(all); err != nil {
		return State{}, err
	}
	for i, r := range all {
		errs = append(errs, x.derive(ctx, r, texts[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return State{}, failed(err, "signing the index")
	}
	if err := x.pagesOnly(all, projects...); err != nil {
		return State{}, err
	}
	files, err := x.state(all, State{}) // derive has mended all metadata
	if err != nil {
		return State{}, failed(err, "signing the index")
	}
	s, err := x.sign(files)
	return s, failed(err, "signing the index")
}

// agrees returns an error unless the records list every file of the index, and every
// listed file has its digest.
func (x *Index) agrees(all []Record) error {
	files, own := listed(all), ownFiles(all)
	names, err := x.listing()
	if err != nil {
		return failed(err, "signing the index")
	}
	var errs []error
	if unlisted := slices.DeleteFunc(names, func(name string) bool { _, ok := files[name]; return ok || own[name] }); len(unlisted) > 0 {
		errs = append(errs, diag.Errorf(diag.Publish, "signing the index: no record lists %s", strings.Join(unlisted, ", ")).
			WithHint("remove these files and run this command again with --anew; then publish the cell of a wheel among them again, promote it and yank it if it was"))
	}
	wrong, err := x.unlike(State{Files: files}, func(name string) bool { _, ok := files[name]; return ok })
	if len(wrong) > 0 {
		errs = append(errs, diag.Errorf(diag.Publish, "signing the index: %s", strings.Join(wrong, "; ")).
			WithHint("restore these files from a copy, or publish their cell again, which replaces them; then run this command again"))
	}
	return errors.Join(append(errs, failed(err, "signing the index"))...)
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
		sum := hexSum(data)
		switch {
		case ctx.Err() != nil:
			return s, nil, context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, name+" is missing")
		case err != nil:
			wrong = append(wrong, err.Error())
		case sum != s.Files[name].SHA256:
			wrong = append(wrong, fmt.Sprintf("%s has sha256 %s, the signature states %s", name, sum, s.Files[name].SHA256))
		}
	}
	return s, wrong, nil
}
