package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"builder/internal/base/atomicfile"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// A trustReader reads a trust file and the files that it names, each once. If signed is
// not nil, it refuses other bytes than the signed ones.
type trustReader struct {
	path   string
	signed map[string]string // sha256 by name
	seen   []trustSubject
	by     PublicKey // who signed
	made   time.Time // when
}

// A TrustRoot is the key that must have signed every trust file, and the memory of the
// newest file of each name.
type TrustRoot struct {
	Key    PublicKey
	Memory Memory
}

// A trustStatement is an in-toto statement about a trust file and the files that it
// names, by their names in it.
type trustStatement struct {
	Type          string         `json:"_type"`
	Subject       []trustSubject `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     struct {
		Made time.Time `json:"made"`
	} `json:"predicate"`
}

type trustSubject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

const (
	inToto    = "https://in-toto.io/Statement/v1"
	trustType = "urn:builder:trust:v1"
)

// signatureOf returns the path of the signature beside a trust file.
func signatureOf(path string) string { return path + ".sigstore.json" }

// SignTrust signs a trust file and all files that it names. It returns the path of the
// signature.
func SignTrust(path string, k Key) (string, error) {
	r := &trustReader{path: path}
	if _, err := r.trust(); err != nil {
		return "", err
	}
	s := trustStatement{Type: inToto, Subject: r.seen, PredicateType: trustType}
	s.Predicate.Made = time.Now().UTC()
	statement, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	data, err := Sign(k, statement)
	if err != nil {
		return "", err
	}
	return signatureOf(path), atomicfile.Write(signatureOf(path), data)
}

// verify reads the signature of the trust file.
func (r *trustReader) verify(root TrustRoot, now time.Time) error {
	by := root.Key
	refuse := func(err error) error {
		return diag.Errorf(diag.Usage, "the trust file %s is not signed by %s, the trust-root: %w", r.path, by, err).
			WithHint("whoever has that key signs it with `builder key sign %s --key FILE`", filepath.Base(r.path))
	}
	data, err := regular.ReadFollowed(signatureOf(r.path), maxTrustFile)
	if err != nil {
		return refuse(err)
	}
	signed, err := Trust{Keys: []PublicKey{by}, Now: now}.Open(data)
	if err != nil {
		return refuse(err)
	}
	var s trustStatement
	if err := json.Unmarshal(signed.Statement, &s); err != nil {
		return refuse(err)
	}
	if s.Type != inToto || s.PredicateType != trustType {
		return refuse(fmt.Errorf("the signature is about a %s", s.PredicateType))
	}
	r.signed, r.by = map[string]string{}, by
	for _, x := range s.Subject {
		r.signed[x.Name] = x.Digest["sha256"]
	}
	r.made = s.Predicate.Made
	return nil
}

// A Memory is the directory where a host remembers the newest signature of each thing that
// it saw, so that an older one does not count.
type Memory string

func (m Memory) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(string(m), hex.EncodeToString(sum[:8])+".trust")
}

// Has reports whether the host remembers a signature of a thing.
func (m Memory) Has(name string) bool {
	_, err := os.Lstat(m.file(name))
	return err == nil
}

// Newest stores the time of a signature, or returns an error if a newer one of the same
// thing was seen.
func (m Memory) Newest(name string, made time.Time) error {
	seen, err := m.newest(name)
	if err == nil {
		err = older(made, seen)
	}
	if err != nil || made.Equal(seen) {
		return err
	}
	text, err := made.MarshalText()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(m), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(m.file(name), text)
}

// Older returns the error of Newest, and stores nothing.
func (m Memory) Older(name string, made time.Time) error {
	seen, err := m.newest(name)
	if err != nil {
		return err
	}
	return older(made, seen)
}

// newest returns the stored time of a thing, or the zero time.
func (m Memory) newest(name string) (seen time.Time, err error) {
	data, err := regular.Read(m.file(name), maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		return seen, nil
	}
	if err != nil {
		return seen, err
	}
	if err := seen.UnmarshalText(data); err != nil {
		return seen, fmt.Errorf("reading %s: %w", m.file(name), err)
	}
	return seen, nil
}

func older(made, seen time.Time) error {
	if !made.Before(seen) {
		return nil
	}
	const precise = time.DateTime + ".000"
	return diag.Errorf(diag.Usage, "it was signed on %s, and this host has seen a newer one, of %s", made.Format(precise), seen.Format(precise)).
		WithHint("get the newer one; if it is another one of the same name, rename one and sign it again")
}

// beside returns the path of a file that the trust file names.
func (r *trustReader) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.path), name)
}

// inWorkTree reports whether a file lies below the working directory. It may come from a
// checkout, in which a link could lead to a file that only the user may read.
func inWorkTree(path string) bool {
	dir, err1 := os.Getwd()
	full, err2 := filepath.Abs(path)
	rest, err3 := filepath.Rel(dir, full)
	return errors.Join(err1, err2, err3) == nil && filepath.IsLocal(rest)
}

// read reads a file that the trust file names.
func (r *trustReader) read(name string, limit int64) ([]byte, error) {
	read := regular.ReadFollowed
	if name == filepath.Base(r.path) && inWorkTree(r.path) {
		read = regular.ReadInside
	}
	data, err := read(r.beside(name), limit)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if r.signed != nil && r.signed[name] != digest {
		return nil, diag.Errorf(diag.Usage, "%s: %s, the trust-root, did not sign these bytes under this name", name, r.by).
			WithHint("if the owner of the trust-root changed the file, they sign it again with `builder key sign %s --key FILE`; otherwise do not trust it", filepath.Base(r.path))
	}
	r.seen = append(r.seen, trustSubject{name, map[string]string{"sha256": digest}})
	return data, nil
}
