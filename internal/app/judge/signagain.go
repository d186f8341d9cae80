package judge

import (
	"errors"
	"io/fs"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
)

// Resigned is an artifact with the number of statements that the key signed again.
type Resigned struct {
	artifact.Artifact
	Statements int
}

// SignAgain signs the statements about artifacts again, with the signing key. They
// must all be signed by trusted keys.
func SignAgain(keys signing.Keys, paths []string) ([]Resigned, error) {
	artifacts, err := artifactsOf(paths)
	if err != nil {
		return nil, err
	}
	key, err := keys.Signing()
	if err != nil {
		return nil, err
	}
	trust, err := keys.Trusted()
	if err != nil {
		return nil, err
	}
	var all []Resigned
	var errs []error
	for _, a := range artifacts {
		n, err := attest.Sealer{Key: key}.SignAgain(a, trust)
		if errors.Is(err, fs.ErrNotExist) {
			err = diag.Errorf(diag.Gate, "%s: %w", a.Name, err).WithHint("copy this folder from the host that built the artifact, too")
		} else if err != nil {
			err = diag.Errorf(diag.Gate, "%s: %w", a.Name, err).WithHint("name the public keys of the hosts that signed with --trust")
		}
		all, errs = append(all, Resigned{a, n}), append(errs, err)
	}
	return all, errors.Join(errs...)
}
