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
	"builder/internal/evidence/signing"
)

// homeKey is the name of the key below the state directory that signs where no
// other is named.
const homeKey = "key.pem"

// PublicOf returns where the public half of a key lies.
func PublicOf(path string) string { return path + ".pub" }

// SigningKey reads the key that was named, or that of the host, which is made
// where there is none.
func (s *Session) SigningKey() (signing.Key, error) {
	if s.Key != "" {
		return signing.ReadKey(s.Key)
	}
	return s.hostKey()
}

// hostKey reads the key of the host, which is made where there is none.
func (s *Session) hostKey() (signing.Key, error) {
	path := filepath.Join(s.Home, homeKey)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		err := NewKey(path, time.Time{})
		switch {
		case err == nil:
			s.Note("made a key that signs what this host builds; others check with %s", PublicOf(path))
		case !errors.Is(err, fs.ErrExist): // another process was faster
			return signing.Key{}, err
		}
	}
	k, err := signing.ReadKey(path)
	if err != nil {
		return k, err
	}
	return k, publicHalf(k, PublicOf(path))
}

// publicHalf makes sure that the public half of a key lies at path: a process
// that was killed may have left it out.
func publicHalf(k signing.Key, path string) error {
	err := k.Public().Write(path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	p, err := signing.ReadPublicKey(path)
	if err == nil && p.ID != k.Public().ID {
		err = diag.Errorf(diag.Usage, "%s is not the public half of the key beside it", path).
			WithHint("remove it: the right one is written anew")
	}
	return err
}

// NewKey makes a key with its public half beside it. Neither replaces a file.
func NewKey(path string, until time.Time) error {
	k, err := signing.NewKey(until)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := k.Write(path); err != nil {
		return err
	}
	return k.Public().Write(PublicOf(path))
}

// Trusted returns the keys whose signatures count: those that were named, and
// that of the host.
func (s *Session) Trusted() (signing.Trust, error) { return s.trusting(s.Trust) }

func (s *Session) trusting(named []string) (signing.Trust, error) {
	t := signing.Trust{Now: time.Now()}
	own := PublicOf(filepath.Join(s.Home, homeKey))
	if _, err := os.Stat(own); err == nil {
		named = append(slices.Clone(named), own)
	}
	var faults []error
	for _, path := range named {
		if path == "" { // a variable that is set to nothing
			continue
		}
		k, err := signing.ReadPublicKey(path)
		t.Keys, faults = append(t.Keys, k), append(faults, err)
	}
	return t, errors.Join(faults...)
}

// sealing says that what a home remembers is signed with the home's own key, whatever
// key signs what leaves it.
func (s *Session) sealing() results.Sealing {
	return results.Sealing{
		Key:   s.hostKey,
		Trust: func() (signing.Trust, error) { return s.trusting(nil) },
		Note:  s.Note,
	}
}
