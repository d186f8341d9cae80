package attest

import (
	"errors"

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
	if len(said.Documents) == 0 {
		return 0, errors.New("no trusted key signed a statement about it")
	}
	var signed []Document
	for _, d := range said.Documents {
		if d.Signer == s.Key.Public().ID {
			continue
		}
		before, err := trust.Open(d.content)
		if err != nil {
			return 0, err
		}
		if d.content, err = signing.Sign(s.Key, before.Statement); err != nil {
			return 0, err
		}
		signed = append(signed, d)
	}
	return len(signed), Keep(a, signed)
}
