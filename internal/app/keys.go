package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/results"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
)

// homeKey is the file name of the default signing key in the state directory.
const homeKey = "key.pem"

// PublicOf returns the path of the public half of a key.
func PublicOf(path string) string { return path + ".pub" }

// SigningKey reads the key given by --key, or the host's key. It creates the host's key
// if it does not exist. Its signatures get time stamps if --timestamp says so, and a log
// entry if --rekor does.
func (s *Session) SigningKey() (k signing.Key, err error) {
	if s.Timestamp != "" && s.Offline {
		return k, diag.Errorf(diag.Usage, "--timestamp asks an authority over the network, and --offline forbids that").
			WithHint("leave one of them out")
	}
	if s.Rekor != "" && s.Keyless == "" {
		return k, diag.Errorf(diag.Usage, "--rekor has no effect without --keyless: nobody looks for a signature of a key in a log").
			WithHint("leave it out")
	}
	switch {
	case s.Keyless != "":
		k, err = s.keyless()
	case s.Key != "":
		k, err = signing.ReadKey(s.Key)
	default:
		k, err = s.hostKey()
	}
	if err != nil {
		return k, err
	}
	if k, err = k.Stamped(s.Timestamp); err != nil {
		return k, err
	}
	return k.Logged(s.Rekor)
}

// PublicKey returns the public key in a file of a private or a public key. Without a
// file it returns the host's.
func PublicKey(s *Session, file string) (signing.PublicKey, error) {
	if file == "" {
		k, err := s.SigningKey()
		return k.Public(), err
	}
	if signing.HoldsPublic(file) {
		return signing.ReadPublicKey(file)
	}
	k, err := signing.ReadKey(file)
	return k.Public(), err
}

// keyless returns a key of this process, which Fulcio certifies.
func (s *Session) keyless() (signing.Key, error) {
	switch {
	case s.Key != "":
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless and --key exclude each other").WithHint("leave one of them out")
	case s.Offline:
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless asks Fulcio over the network, and --offline forbids that").WithHint("leave one of them out")
	case s.Timestamp == "":
		return signing.Key{}, diag.Errorf(diag.Usage, "--keyless needs --timestamp: a certificate lasts minutes, and only a time stamp proves that it was valid").
			WithHint("name a timestamp authority with --timestamp URL")
	}
	return signing.Keyless(s.Keyless, signing.Token(os.Getenv))
}

// hostKey reads the host's key and creates it if it does not exist.
func (s *Session) hostKey() (signing.Key, error) {
	path := filepath.Join(s.Home, homeKey)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := NewKey(path, time.Time{})
		switch {
		case err == nil:
			s.Note("made a key to sign the artifacts of this host; other hosts verify them with %s", PublicOf(path))
		case !errors.Is(err, fs.ErrExist): // another process may have created it first
			return signing.Key{}, err
		}
	}
	k, err := signing.ReadKey(path)
	if err != nil {
		return k, err
	}
	return k, publicHalf(k, PublicOf(path))
}

// publicHalf writes the public half of a key to path if it is missing: a killed process
// may not have written it.
func publicHalf(k signing.Key, path string) error {
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
func NewKey(path string, until time.Time) error {
	k, err := signing.NewKey(until)
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
func (s *Session) Trusted() (signing.Trust, error) {
	t, err := s.trusting(s.Trust)
	if err != nil || s.Key == "" {
		return t, err
	}
	k, err := signing.ReadKey(s.Key)
	t.Keys = append(t.Keys, k.Public())
	return t, err
}

func (s *Session) trusting(named []string) (signing.Trust, error) {
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
		t.Keys, errs = append(t.Keys, more.Keys...), append(errs, err)
		for channel, n := range more.Rebuilders {
			if t.Rebuilders == nil {
				t.Rebuilders = map[string]int{}
			}
			t.Rebuilders[channel] = max(t.Rebuilders[channel], n)
		}
	}
	// The host's key comes last: a trust file can give it roles. A public half alone does not
	// count, because whoever writes to the home can put one of their own there.
	k, err := signing.ReadPublicHalf(filepath.Join(s.Home, homeKey))
	switch {
	case err == nil:
		t.Keys = append(t.Keys, k)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// sealing signs the records in a home, and decides which of them count: with the key of
// --key if there is one, and with the home's own key otherwise. Others may write to a
// home, such as one in a cache of CI, and bring a key and records of their own. The key
// of --key lies elsewhere.
func (s *Session) sealing() results.Sealing {
	own := results.Sealing{
		Key:   s.hostKey,
		Trust: func() (signing.Trust, error) { return s.trusting(nil) },
		Note:  s.Note,
	}
	if s.Key != "" {
		own.Key = func() (signing.Key, error) { return signing.ReadKey(s.Key) }
		own.Trust = func() (signing.Trust, error) {
			k, err := signing.ReadKey(s.Key)
			return signing.Trust{Keys: []signing.PublicKey{k.Public()}, Now: time.Now()}, err
		}
	}
	return own
}

// Resigned is an artifact with the number of statements that the key signed again.
type Resigned struct {
	artifact.Artifact
	Statements int
}

// SignAgain signs the statements about artifacts again, with the key of the session. They
// must all be signed by trusted keys.
func SignAgain(s *Session, paths []string) ([]Resigned, error) {
	artifacts, err := artifactsOf(paths)
	if err != nil {
		return nil, err
	}
	key, err := s.SigningKey()
	if err != nil {
		return nil, err
	}
	trust, err := s.Trusted()
	if err != nil {
		return nil, err
	}
	var all []Resigned
	var errs []error
	for _, a := range artifacts {
		n, err := attest.Sealer{Key: key}.SignAgain(a, trust)
		if err != nil {
			err = diag.Errorf(diag.Gate, "%s: %w", a.Name, err).WithHint("name the public keys of the hosts that signed with --trust")
		}
		all, errs = append(all, Resigned{a, n}), append(errs, err)
	}
	return all, errors.Join(errs...)
}
