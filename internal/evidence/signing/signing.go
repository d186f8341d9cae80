// Package signing signs statements and verifies signed ones. Its output is a Sigstore
// bundle (v0.3) with a DSSE envelope, which cosign and similar tools can read. The
// package does not interpret statements.
//
// No payload is used before its signature is verified: [Trust.Open] returns either a
// payload or an error, never both.
package signing

import (
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"builder/internal/base/diag"
	"builder/internal/base/web"
)

// payloadType is the type of in-toto statements in DSSE envelopes.
const payloadType = "application/vnd.in-toto+json"

// Sign returns a statement in a signed bundle, as JSON, with a time stamp if the key
// names an authority.
func Sign(k Key, statement []byte) ([]byte, error) {
	b, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: payloadType}, keypair{k}, k.options())
	for _, stamp := range b.GetVerificationMaterial().GetTimestampVerificationData().GetRfc3161Timestamps() {
		err = errors.Join(err, checkStamp(stamp.GetSignedTimestamp(), b.GetDsseEnvelope().GetSignatures()[0].GetSig()))
	}
	if err != nil && k.certifier != nil {
		return nil, diag.Errorf(diag.Fetch, "signing with a certificate and a time stamp of %s: %w", diag.Redact(k.authority), web.WithoutAddress(err)).
			WithHint("try again, or sign with a key: leave out --keyless")
	}
	if err != nil && k.authority != "" {
		return nil, diag.Errorf(diag.Fetch, "signing with a time stamp of %s: %w", diag.Redact(k.authority), web.WithoutAddress(err)).
			WithHint("try again, or sign without --timestamp: then the signature counts only until the last day of the key")
	}
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return protojson.MarshalOptions{}.Marshal(b)
}

// Trust holds the trusted keys, and the time for checking their expiry.
type Trust struct {
	Keys []PublicKey
	Now  time.Time

	// Rebuilders is the number of keys, by channel, whose second build must have the same
	// bytes as the first.
	Rebuilders map[string]int

	// Authorities are the timestamp authorities whose time stamps count.
	Authorities []root.TimestampingAuthority
}

// A Signed is a statement with a valid signature, and the id of its key.
type Signed struct {
	Statement []byte
	KeyID     string
}

// Open verifies that a trusted key signed a bundle, on or before the last day of the
// key. After that day, only a time stamp proves it. The caller must compare the subjects
// of the statement with the artifact.
func (t Trust) Open(data []byte) (Signed, error) {
	b := new(bundle.Bundle)
	if err := b.UnmarshalJSON(data); err != nil {
		return Signed{}, fmt.Errorf("it is not a Sigstore bundle: %w", err)
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil || envelope.GetPayloadType() != payloadType {
		return Signed{}, errors.New("it holds no in-toto statement")
	}
	content, err := b.VerificationContent()
	if err != nil {
		return Signed{}, err
	}
	id := b.GetVerificationMaterial().GetPublicKey().GetHint()
	if leaf := content.Certificate(); leaf != nil {
		id, err = t.openCertified(b, leaf)
	} else if _, err = t.admits(id); err == nil {
		err = t.verifyKey(b, id)
	}
	if err != nil {
		return Signed{}, err
	}
	if k, _ := t.Find(id); k.over(t.Now) {
		if err := t.proven(k, b); err != nil {
			return Signed{}, err
		}
	}
	return Signed{envelope.GetPayload(), id}, nil
}

// ErrStranger means that an untrusted key signed a statement.
var ErrStranger = errors.New("an untrusted key signed it")

// A Stranger is an [ErrStranger] with the id of the key.
type Stranger struct{ ID string }

func (s Stranger) Error() string { return ErrStranger.Error() + ": " + s.ID }
func (s Stranger) Unwrap() error { return ErrStranger }

// admits returns the key with an id, or an error if it is not trusted. The id in a
// bundle is only a claim. Open verifies the signature with the key itself.
func (t Trust) admits(id string) (PublicKey, error) {
	if id == "" {
		return PublicKey{}, errors.New("it names no key and has no certificate")
	}
	k, known := t.Find(id)
	if !known || k.key == nil {
		return k, Stranger{id}
	}
	return k, nil
}

// material returns the trusted keys in the form used by Sigstore's verifier.
func (t Trust) material() root.TrustedMaterial {
	keys := map[string]*root.ExpiringKey{}
	for _, k := range t.Keys {
		if k.key == nil {
			continue
		}
		v, err := signature.LoadECDSAVerifier(k.key, crypto.SHA256)
		if err == nil { // always nil for a key on P-256
			keys[k.ID] = root.NewExpiringKey(v, time.Time{}, time.Time{})
		}
	}
	return root.NewTrustedPublicKeyMaterialFromMapping(keys)
}
