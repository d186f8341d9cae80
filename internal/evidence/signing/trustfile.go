package signing

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/root"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// trustFile is a file of trusted keys and identities.
type trustFile struct {
	Keys []trustEntry `yaml:"keys"`
}

// trustEntry is a key or an identity of a trust file. A relative path begins at the file.
type trustEntry struct {
	Key     string `yaml:"key,omitempty"` // file of a public key
	Issuer  string `yaml:"issuer,omitempty"`
	Subject string `yaml:"subject,omitempty"` // of certificates that the issuer's tokens get
	Roots   string `yaml:"roots,omitempty"`   // trusted_root.json of the Sigstore that it uses
}

// maxTrustFile limits the size of a trust file, and of a trusted_root.json, in bytes.
const maxTrustFile = 1 << 20

// ReadTrusted reads a public key, or the keys of a trust file, whose name ends in .yaml or
// .yml.
func ReadTrusted(path string) ([]PublicKey, error) {
	if end := filepath.Ext(path); end != ".yaml" && end != ".yml" {
		k, err := ReadPublicKey(path)
		return []PublicKey{k}, err
	}
	read := regular.ReadFollowed
	if inWorkTree(path) {
		read = regular.ReadInside
	}
	data, err := read(path, maxTrustFile)
	if err != nil {
		return nil, diag.Errorf(diag.Usage, "reading the trust file %s: %w", path, err)
	}
	if bytes.Contains(data, []byte("-----BEGIN")) { // an error about YAML would show a part of it
		return nil, diag.Errorf(diag.Usage, "reading the trust file %s: it holds a key, and not the names of files with keys", path)
	}
	return parseTrust(path, data)
}

// inWorkTree reports whether a file lies below the working directory. It may come from a
// checkout, in which a link could lead to a file that only the user may read.
func inWorkTree(path string) bool {
	dir, err1 := os.Getwd()
	full, err2 := filepath.Abs(path)
	rest, err3 := filepath.Rel(dir, full)
	return errors.Join(err1, err2, err3) == nil && filepath.IsLocal(rest)
}

// parseTrust reads a trust file and the files that it names, and reports all faults.
func parseTrust(path string, data []byte) ([]PublicKey, error) {
	var file trustFile
	f, err := decode.YAML(path, data, &file)
	if err != nil {
		return nil, err
	}
	var all []PublicKey
	for i, entry := range file.Keys {
		k, err := entry.read(filepath.Dir(path))
		if err == nil && slices.ContainsFunc(all, func(x PublicKey) bool { return x.ID == k.ID }) {
			err = fmt.Errorf("the key %s is named twice", k.ID)
		}
		if err != nil {
			f.Add(fmt.Sprintf("keys[%d]", i), "%w", err)
		}
		all = append(all, k)
	}
	if len(file.Keys) == 0 {
		f.Add("keys", "it names no key")
	}
	return all, f.Err()
}

// read reads the key, or the identity with its roots. dir is the directory of the file.
func (e trustEntry) read(dir string) (PublicKey, error) {
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(dir, name)
	}
	identity := e.Issuer + e.Subject + e.Roots
	switch {
	case e.Key != "" && identity == "":
		return ReadPublicKey(beside(e.Key))
	case e.Key != "" || e.Issuer == "" || e.Subject == "" || e.Roots == "":
		return PublicKey{}, errors.New("name a key, or an issuer, a subject and roots")
	}
	k := PublicKey{ID: e.Subject + " of " + e.Issuer, issuer: e.Issuer, subject: e.Subject}
	data, err := regular.ReadFollowed(beside(e.Roots), maxTrustFile)
	switch {
	case err != nil:
	case !bytes.HasPrefix(data, []byte("{")): // an error of the decoder would show a part of it
		err = errors.New("it is no JSON object")
	default:
		k.roots, err = root.NewTrustedRootFromJSON(data)
	}
	if err != nil {
		return k, fmt.Errorf("roots: expected a trusted_root.json of Sigstore: %s: %w", e.Roots, err)
	}
	return k, nil
}
