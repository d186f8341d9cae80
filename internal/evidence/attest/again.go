package attest

import (
	"errors"
	"path/filepath"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
)

// SignAgain signs every statement about an artifact in place of the trusted keys that
// signed it, and returns how many it signed. It reads nothing but the folder and the
// digest of the artifact: a host that runs no artifact can vouch for the hosts that did.
// A folder with a problem stays as it is.
func (s Sealer) SignAgain(a artifact.Artifact, trust signing.Trust) (int, error) {
	said, err := Read(a, trust)
	if err != nil {
		return 0, err
	}
	if said.Signed == 0 {
		return 0, errors.New("no trusted key signed a statement about it")
	}
	signed := map[string][]byte{} // new content of each file
	left := int64(maxFolder)
	for _, d := range said.Documents {
		file := artifact.Artifact{Name: d.Name, Path: filepath.Join(Dir(a.Path), d.Name)}
		data, err := readFile(&file, &left)
		if err != nil {
			return 0, err
		}
		if file.SHA256 != d.SHA256 {
			return 0, errors.New(d.Name + " changed while it was read")
		}
		before, err := trust.Open(data)
		if err != nil {
			return 0, err
		}
		if before.KeyID == s.Key.Public().ID {
			continue
		}
		if signed[d.Name], err = signing.Sign(s.Key, before.Statement); err != nil {
			return 0, err
		}
	}
	for name, data := range signed {
		if err := writeFile(filepath.Join(Dir(a.Path), name), data); err != nil {
			return 0, err
		}
	}
	return len(signed), nil
}
