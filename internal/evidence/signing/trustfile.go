package signing

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/root"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// A Role is a kind of statement that a key may sign.
type Role string

// The roles.
const (
	Maker     Role = "builder"   // how an artifact was made, and what is in it
	GateHost  Role = "gates"     // verdicts of gates
	Rebuilder Role = "rebuilder" // the verdict of a second build
)

var roles = []Role{Maker, GateHost, Rebuilder}

// channels are the channels of publications.
var channels = []string{"candidate", "stable"}

// trustFile is a file of trusted keys and identities.
type trustFile struct {
	Keys       []trustEntry   `yaml:"keys"`
	Rebuilders map[string]int `yaml:"rebuilders,omitempty"` // by channel, see [Trust]
}

// trustEntry is a key or an identity of a trust file. A relative path begins at the file.
type trustEntry struct {
	Key     string `yaml:"key,omitempty"` // file of a public key
	Issuer  string `yaml:"issuer,omitempty"`
	Subject string `yaml:"subject,omitempty"` // of certificates that the issuer's tokens get
	Roots   string `yaml:"roots,omitempty"`   // trusted_root.json of the Sigstore that it uses
	Roles   []Role `yaml:"roles,omitempty"`
}

// maxTrustFile limits the size of a trust file, and of a trusted_root.json, in bytes.
const maxTrustFile = 1 << 20

// ReadTrusted reads a public key, or a trust file, whose name ends in .yaml or .yml. The
// time of the result is not set.
func ReadTrusted(path string) (Trust, error) {
	if end := filepath.Ext(path); end != ".yaml" && end != ".yml" {
		k, err := ReadPublicKey(path)
		return Trust{Keys: []PublicKey{k}}, err
	}
	read := regular.ReadFollowed
	if inWorkTree(path) {
		read = regular.ReadInside
	}
	data, err := read(path, maxTrustFile)
	if err != nil {
		return Trust{}, diag.Errorf(diag.Usage, "reading the trust file %s: %w", path, err)
	}
	if bytes.Contains(data, []byte("-----BEGIN")) { // an error about YAML would show a part of it
		return Trust{}, diag.Errorf(diag.Usage, "reading the trust file %s: it holds a key, and not the names of files with keys", path)
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
func parseTrust(path string, data []byte) (Trust, error) {
	var file trustFile
	index, err := decode.YAML(path, data, &file)
	if err != nil {
		return Trust{}, err
	}
	var all []PublicKey
	var errs []error
	fault := func(at string, format string, args ...any) {
		errs = append(errs, diag.At(index.At("%s", at), format, args...))
	}
	for i, entry := range file.Keys {
		k, err := entry.read(path)
		if err != nil {
			fault(fmt.Sprintf("keys[%d]", i), "%w", err)
		} else if slices.ContainsFunc(all, func(x PublicKey) bool { return x.ID == k.ID }) {
			fault(fmt.Sprintf("keys[%d]", i), "the key %s is named twice", k.ID)
		}
		for j, r := range entry.Roles {
			if !slices.Contains(roles, r) {
				fault(fmt.Sprintf("keys[%d].roles[%d]", i, j), "%q is no role: known are builder, gates and rebuilder", r)
			}
		}
		k.Roles, k.File = entry.Roles, path
		all = append(all, k)
	}
	if len(file.Keys) == 0 {
		errs = append(errs, diag.At(diag.Pos{File: path}, "it names no key"))
	}
	mayRebuild := 0
	for _, k := range all {
		if k.May(Rebuilder) {
			mayRebuild++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Rebuilders)) {
		at := diag.Pos{File: path}
		switch n := file.Rebuilders[name]; {
		case !slices.Contains(channels, name):
			errs = append(errs, diag.At(at, "rebuilders: %q is not a channel: known are %s", name, strings.Join(channels, " and ")))
		case n < 0 || n > mayRebuild:
			errs = append(errs, diag.At(at, "rebuilders: %s requires %d keys, and the file names %d that may rebuild", name, n, mayRebuild))
		}
	}
	return Trust{Keys: all, Rebuilders: file.Rebuilders}, errors.Join(errs...)
}

// read reads the key or the identity, and its roots.
func (e trustEntry) read(trustFile string) (k PublicKey, err error) {
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(trustFile), name)
	}
	switch identified := e.Issuer != "" && e.Subject != "" && e.Roots != ""; {
	case e.Key != "" && e.Issuer+e.Subject == "":
		k, err = ReadPublicKey(beside(e.Key))
	case e.Key == "" && identified:
		k = PublicKey{ID: e.Subject + " of " + e.Issuer, issuer: e.Issuer, subject: e.Subject}
	default:
		err = errors.New("name a key, or an issuer, a subject and roots")
	}
	if err != nil || e.Roots == "" {
		return k, err
	}
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
