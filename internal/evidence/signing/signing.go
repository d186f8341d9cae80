// Package signing puts a signature around a statement, and opens what others
// signed. What it writes is a Sigstore bundle (v0.3) with a DSSE envelope, which
// cosign and its like read. What a statement says is not its matter.
//
// Nothing is looked at before its signature was found right: [Trust.Open] returns
// a payload or an error, never both.
package signing

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

// payloadType is that of in-toto statements in DSSE envelopes.
const payloadType = "application/vnd.in-toto+json"

// Sign returns a statement in a signed bundle, as JSON.
func Sign(k Key, statement []byte) ([]byte, error) {
	b, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: payloadType}, keypair{k}, sign.BundleOptions{})
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return protojson.MarshalOptions{}.Marshal(b)
}

// Trust is whose signatures count, and the time at which that is asked.
type Trust struct {
	Keys []PublicKey
	Now  time.Time
}

// A Signed is a statement whose signature is right, and the key that made it.
type Signed struct {
	Statement []byte
	KeyID     string
}

// Open checks that a bundle is signed by a key that is trusted. Of which bytes its
// statement speaks is for the caller to compare.
func (t Trust) Open(data []byte) (Signed, error) {
	b := new(bundle.Bundle)
	if err := b.UnmarshalJSON(data); err != nil {
		return Signed{}, fmt.Errorf("it is no Sigstore bundle: %w", err)
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil || envelope.GetPayloadType() != payloadType {
		return Signed{}, errors.New("it holds no in-toto statement")
	}
	id := b.GetVerificationMaterial().GetPublicKey().GetHint()
	if err := t.admits(id); err != nil {
		return Signed{}, err
	}
	verifier, err := verify.NewVerifier(t.material(), verify.WithNoObserverTimestamps())
	if err != nil {
		return Signed{}, err
	}
	policy := verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey())
	if _, err := verifier.Verify(b, policy); err != nil {
		return Signed{}, fmt.Errorf("the signature does not hold: %w", err)
	}
	return Signed{envelope.GetPayload(), id}, nil
}

// ErrStranger is the fault of a statement whose key nobody trusts.
var ErrStranger = errors.New("it is signed by a key that is not trusted")

// admits says why a key does not count, or nothing. Which key a bundle names is
// only a name: the signature is checked against the key itself.
func (t Trust) admits(id string) error {
	if id == "" {
		return errors.New("it names no key: it was signed with a certificate, which this version cannot check")
	}
	i := slices.IndexFunc(t.Keys, func(k PublicKey) bool { return k.ID == id })
	if i < 0 {
		return fmt.Errorf("%w: %s", ErrStranger, id)
	}
	if k := t.Keys[i]; k.over(t.Now) {
		return fmt.Errorf("the time of its key is over since %s: %s", k.NotAfter.Format(time.DateOnly), id)
	}
	return nil
}

// material is the trust as Sigstore's verifier takes it.
func (t Trust) material() root.TrustedMaterial {
	keys := map[string]*root.ExpiringKey{}
	for _, k := range t.Keys {
		v, err := signature.LoadECDSAVerifier(k.key, crypto.SHA256)
		if err == nil { // it is a key on P-256
			keys[k.ID] = root.NewExpiringKey(v, time.Time{}, time.Time{})
		}
	}
	return root.NewTrustedPublicKeyMaterialFromMapping(keys)
}
