package home

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/results"
	"builder/internal/evidence/signing"
	"builder/internal/input/store"
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

	Keyless signing.Services // sign without a key; no Fulcio means with one
}

// Signing returns the key that signs: one of this process if --keyless says so, the one of
// --key, or the host's key. It creates the host's key if it does not exist.
func (k Keys) Signing() (signing.Key, error) {
	switch {
	case k.Keyless.Fulcio != "":
		return k.certified()
	case k.Keyless.Timestamp != "" || k.Keyless.Rekor != "":
		return signing.Key{}, diag.Errorf(diag.Usage, "--timestamp and --rekor have no effect without --keyless: a signature of a key needs no proof of its time").
			WithHint("leave them out")
	case k.Key != "":
		return signing.ReadKey(k.Key)
	}
	return k.hostKey()
}

// Public returns the public key in a file of a private or a public key. Without a file it
// returns the host's.
func (k Keys) Public(file string) (signing.PublicKey, error) {
	if file == "" {
		key, err := k.Signing()
		return key.Public(), err
	}
	if signing.HoldsPublic(file) {
		return signing.ReadPublicKey(file)
	}
	key, err := signing.ReadKey(file)
	return key.Public(), err
}

// certified returns a key of this process, which Fulcio certifies.
func (k Keys) certified() (signing.Key, error) {
	switch {
	case k.Key != "":
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless and --key exclude each other").WithHint("leave one of them out")
	case k.Offline:
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless asks Fulcio over the network, and --offline forbids that").WithHint("leave one of them out")
	case k.Keyless.Timestamp == "":
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless needs --timestamp: a certificate lasts minutes, and only a time stamp proves that it was valid").
			WithHint("name a timestamp authority with --timestamp URL")
	}
	return signing.Keyless(k.Keyless, signing.Token(os.Getenv))
}

// hostKey reads the host's key and creates it if it does not exist.
func (k Keys) hostKey() (signing.Key, error) {
	path := filepath.Join(k.Home, homeKey)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := NewKey(path)
		switch {
		case err == nil:
			k.Note("made a key to sign the artifacts of this host; other hosts verify them with %s", PublicOf(path))
		case !errors.Is(err, fs.ErrExist): // another process may have created it first
			return signing.Key{}, err
		}
	}
	key, err := signing.ReadKey(path)
	if err != nil {
		return key, err
	}
	return key, writePublicHalf(key, PublicOf(path))
}

// writePublicHalf writes the public half of a key to path if it is missing: a killed process
// may not have written it.
func writePublicHalf(k signing.Key, path string) error {
	err := k.Public().Write(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	p, err := signing.ReadPublicKey(path)
	if err == nil && p.ID != k.Public().ID {
		err = diag.Errorf(diag.Usage, "%s is not the public half of the key beside it", path).
			WithHint("remove it: the next command writes the right one")
	}
	return err
}

// NewKey creates a key and its public half beside it. It replaces no file.
func NewKey(path string) error {
	k, err := signing.NewKey()
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
func (k Keys) Trusted() (signing.Trust, error) {
	t, err := k.trusting(k.Trust)
	if err != nil || k.Key == "" {
		return t, err
	}
	key, err := signing.ReadKey(k.Key)
	t.Keys = append(t.Keys, key.Public())
	return t, err
}

func (k Keys) trusting(named []string) (signing.Trust, error) {
	t := signing.Trust{Now: time.Now()}
	var errs []error
	for _, path := range named {
		if path == "" { // an environment variable may be set but empty
			continue
		}
		more, err := signing.ReadTrusted(path)
		if e, ok := errors.AsType[*diag.Error](err); ok && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			err = e.WithHint("--trust needs the public key of the host that signed: `builder key show` prints it there")
		}
		t.Keys, errs = append(t.Keys, more...), append(errs, err)
	}
	// A public half alone does not count, because whoever writes to the home can put one of
	// their own there.
	own, err := signing.ReadPublicHalf(filepath.Join(k.Home, homeKey))
	switch {
	case err == nil:
		t.Keys = append(t.Keys, own)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// Results returns the results in a store, verified and signed with the key of the home.
func (k Keys) Results(kept *store.Store) *results.Results {
	return results.New(kept).Sealed(k.sealing())
}

// sealing signs the records in a home, and decides which of them count: with the key of
// --key if there is one, and with the home's own key otherwise. Others may write to a
// home, such as one in a cache of CI, and bring a key and records of their own. The key
// of --key lies elsewhere.
func (k Keys) sealing() results.Sealing {
	own := results.Sealing{
		Key:   k.hostKey,
		Trust: func() (signing.Trust, error) { return k.trusting(nil) },
		Note:  k.Note,
	}
	if k.Key != "" {
		own.Key = func() (signing.Key, error) { return signing.ReadKey(k.Key) }
		own.Trust = func() (signing.Trust, error) {
			key, err := signing.ReadKey(k.Key)
			return signing.Trust{Keys: []signing.PublicKey{key.Public()}, Now: time.Now()}, err
		}
	}
	return own
}
