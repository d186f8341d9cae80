package signing

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// homeKey is the file name of the default signing key in the state directory.
const homeKey = "key.pem"

// PublicOf returns the path of the public half of a key.
func PublicOf(path string) string { return path + ".pub" }

// Keys are the signing key and the trusted keys of an invocation.
type Keys struct {
	Home    string                           // the state directory, which has the host's key
	Offline bool                             // do not use the network
	Note    func(format string, args ...any) // prints a line for the user

	Key   string   // file of the signing key; "" is the host's key
	Trust []string // public key files, in addition to the host's key

	Keyless Services // sign without a key; no Fulcio means with one
}

// Signing returns the key that signs: one of this process if --keyless says so, the one of
// --key, or the host's key. It creates the host's key if it does not exist.
func (k Keys) Signing() (Key, error) {
	switch {
	case k.Keyless.Fulcio != "":
		return k.certified()
	case k.Keyless.Timestamp != "" || k.Keyless.Rekor != "":
		return Key{}, diag.Errorf(diag.Usage, "--timestamp and --rekor have no effect without --keyless: a signature of a key needs no proof of its time").
			WithHint("leave them out")
	}
	return k.ForResults()
}

// Public returns the public key in a file of a private or a public key. Without a file it
// returns the host's.
func (k Keys) Public(file string) (PublicKey, error) {
	if file == "" {
		key, err := k.Signing()
		return key.Public(), err
	}
	if public, err := ReadPublicKey(file); err == nil {
		return public, nil
	}
	key, err := ReadKey(file)
	return key.Public(), err
}

// certified returns a key of this process, which Fulcio certifies.
func (k Keys) certified() (Key, error) {
	switch {
	case k.Key != "":
		return Key{}, diag.Errorf(diag.Usage, "--keyless and --key exclude each other").WithHint("leave one of them out")
	case k.Offline:
		return Key{}, diag.Errorf(diag.Usage, "--keyless asks Fulcio over the network, and --offline forbids that").WithHint("leave one of them out")
	case k.Keyless.Timestamp == "":
		return Key{}, diag.Errorf(diag.Usage, "--keyless needs --timestamp: a certificate lasts minutes, and only a time stamp proves that it was valid").
			WithHint("name a timestamp authority with --timestamp URL")
	}
	return Keyless(k.Keyless, Token(os.Getenv))
}

// hostKey reads the host's key and creates it if it does not exist.
func (k Keys) hostKey() (Key, error) {
	path := filepath.Join(k.Home, homeKey)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := NewKeyFile(path)
		switch {
		case err == nil:
			k.Note("made a key to sign the artifacts of this host; other hosts verify them with %s", PublicOf(path))
		case !errors.Is(err, fs.ErrExist): // another process may have created it first
			return Key{}, err
		}
	}
	key, err := ReadKey(path)
	if err != nil {
		return key, err
	}
	return key, writePublicHalf(key, PublicOf(path))
}

// writePublicHalf writes the public half of a key to path if it is missing: a killed process
// may not have written it.
func writePublicHalf(k Key, path string) error {
	err := k.Public().Write(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	p, err := ReadPublicKey(path)
	if err == nil && p.ID != k.Public().ID {
		err = diag.Errorf(diag.Usage, "%s is not the public half of the key beside it", path).
			WithHint("remove it: the next command writes the right one")
	}
	return err
}

// NewKeyFile creates a key and its public half beside it. It replaces no file.
func NewKeyFile(path string) error {
	k, err := NewKey()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := k.Write(path); err != nil {
		return err
	}
	return k.Public().Write(PublicOf(path))
}

// Trusted returns the keys whose signatures count: the keys given by --trust, the
// host's key, and the key given by --key.
func (k Keys) Trusted() (Trust, error) {
	t, err := k.trusting(k.Trust)
	if err != nil || k.Key == "" {
		return t, err
	}
	key, err := ReadKey(k.Key)
	t.Keys = append(t.Keys, key.Public())
	return t, err
}

func (k Keys) trusting(named []string) (Trust, error) {
	t := Trust{Now: time.Now()}
	var errs []error
	for _, path := range named {
		if path == "" { // an environment variable may be set but empty
			continue
		}
		more, err := ReadTrusted(path)
		if e, ok := errors.AsType[*diag.Error](err); ok && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			err = e.WithHint("--trust needs the public key of the host that signed: `builder key show` prints it there")
		}
		t.Keys, errs = append(t.Keys, more...), append(errs, err)
	}
	// A public half alone does not count, because whoever writes to the home can put one of
	// their own there.
	own, err := readKey(filepath.Join(k.Home, homeKey), func(*os.File) error { return nil })
	switch {
	case err == nil:
		t.Keys = append(t.Keys, own.public)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// ForResults returns the key that signs the records of results in a home: that of --key if
// there is one, and the home's own key otherwise.
func (k Keys) ForResults() (Key, error) {
	if k.Key != "" {
		return ReadKey(k.Key)
	}
	return k.hostKey()
}

// TrustedForResults returns the keys whose records of results count: that of --key if there
// is one, and the home's own key otherwise. Others may write to a home, such as one in a
// cache of CI, and bring a key and records of their own. The key of --key lies elsewhere.
func (k Keys) TrustedForResults() (Trust, error) {
	if k.Key == "" {
		return k.trusting(nil)
	}
	key, err := ReadKey(k.Key)
	return Trust{Keys: []PublicKey{key.Public()}, Now: time.Now()}, err
}

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
