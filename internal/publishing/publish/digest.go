package publish

import (
	"context"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/input/oci"
	"builder/internal/plan/lock"
)

// A Digest is a publication in a registry, known by the digest of its manifest.
type Digest struct {
	Registry
	digest string // sha256:HEX
}

// Digests describes the syntax of a digest.
const Digests = "oci://HOST/REPOSITORY@sha256:DIGEST"

// InRegistry reports whether a path of the user names a publication in a registry.
func InRegistry(path string) bool { return strings.HasPrefix(path, oci.Scheme) }

// OpenDigest parses the address of a publication. It contacts no registry.
func OpenDigest(text string, insecure bool) (Digest, error) {
	place, digest, _ := strings.Cut(text, "@")
	if err := oci.CheckDigest(digest); err != nil {
		return Digest{}, diag.Errorf(diag.Usage, "the address of a publication needs a digest: %w", err).
			WithHint("write %s, as `builder publish` prints it; a tag can move", Digests)
	}
	r, err := openRegistry(place, insecure)
	return Digest{r, digest}, err
}

// String returns the address as users write it.
func (d Digest) String() string { return d.Registry.String() + "@" + d.digest }

// Pull copies the publication to dir, in the layout of a run with its entry, and returns
// the path of its wheel or archive. Only files listed in signed statements are copied. One
// other file is an error, and then none is. Without a policy the verdicts are not checked.
func (d Digest) Pull(ctx context.Context, dir string, trust signing.Trust, policy attest.Policy) (path string, err error) {
	m, err := d.Manifest(ctx, d.digest)
	if err != nil {
		return "", err
	}
	var said attest.Bundle
	key := m.Annotations[keyNote]
	path, err = d.bring(ctx, m, key, dir, vet(key, trust, policy, &said))
	if err != nil {
		return "", err
	}
	return path, lock.WriteEntry(dir, said.Provenance.Definition.Internal.Entry)
}

// Attach adds the statements beside a pulled artifact to those in the registry. Statements
// already there stay.
func (d Digest) Attach(ctx context.Context, a artifact.Artifact, trust signing.Trust) error {
	beside, err := attest.Read(a, trust)
	if err != nil {
		return err
	}
	there, err := d.said(ctx, d.digest)
	if err != nil {
		return refused(err)
	}
	missing := slices.DeleteFunc(beside.Documents, func(d attest.Document) bool { return has(there, d.Name) })
	if len(missing) == 0 {
		return nil
	}
	return d.Refer(ctx, d.digest, referrersOf(missing))
}
