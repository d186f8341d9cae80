// Package signing signs statements and verifies signed ones. Its output is a Sigstore
// bundle (v0.3) with a DSSE envelope, which cosign and similar tools can read. The
// package does not interpret statements.
//
// No payload is used before its signature is verified: [Trust.Open] returns either a
// payload or an error, never both.
package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	fulcio "github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"builder/internal/base/diag"
	"builder/internal/base/web"
)

// payloadType is the type of in-toto statements in DSSE envelopes.
const payloadType = "application/vnd.in-toto+json"

// Sign returns a statement in a signed bundle, as JSON. It asks the services of the key
// for a certificate, a time stamp and a log entry.
func Sign(k Key, statement []byte) ([]byte, error) {
	b, err := sign.Bundle(&sign.DSSEData{Data: statement, PayloadType: payloadType}, keypair{k}, k.services)
	switch {
	case err == nil:
		return protojson.MarshalOptions{}.Marshal(b)
	case k.services.CertificateProvider != nil: // a certificate for the identity of a job replaces the key
		return nil, diag.Errorf(diag.Fetch, "signing without a key: %w", web.WithoutAddress(err)).
			WithHint("try again, or sign with a key: leave out --keyless")
	}
	return nil, fmt.Errorf("signing: %w", err)
}

// Trust holds the trusted keys, and the time at which statements are judged.
type Trust struct {
	Keys []PublicKey
	Now  time.Time
}

// find returns the trusted key with an id.
func (t Trust) find(id string) (PublicKey, bool) {
	i := slices.IndexFunc(t.Keys, func(k PublicKey) bool { return k.ID == id })
	if i < 0 {
		return PublicKey{}, false
	}
	return t.Keys[i], true
}

// A Signed is a statement with a valid signature, and the id of its key.
type Signed struct {
	Statement []byte
	KeyID     string
}

// Open verifies that a trusted key signed a bundle. The caller must compare the subjects of
// the statement with the artifact.
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
	k, err := t.signer(b, content.Certificate())
	switch {
	case err != nil:
	case k.key != nil:
		err = k.verify(b)
	default:
		err = k.verifyCertified(b)
	}
	if err != nil {
		return Signed{}, err
	}
	return Signed{envelope.GetPayload(), k.ID}, nil
}

// signer returns the trusted key or identity that a bundle names. This is only a claim:
// Open verifies the signature with it.
func (t Trust) signer(b *bundle.Bundle, leaf *x509.Certificate) (PublicKey, error) {
	id := b.GetVerificationMaterial().GetPublicKey().GetHint()
	if leaf != nil {
		// A trusted key needs no certificate: that of this process, which made the bundle.
		if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); ok && key.Curve == elliptic.P256() {
			own, err := newPublicKey(key)
			if k, known := t.find(own.ID); err == nil && known && k.key != nil {
				return k, nil
			}
		}
		says, err := fulcio.SummarizeCertificate(leaf)
		if err != nil {
			return PublicKey{}, fmt.Errorf("reading its certificate: %w", err)
		}
		id = says.SubjectAlternativeName + " of " + says.Issuer
	}
	if id == "" {
		return PublicKey{}, errors.New("it names no key and has no certificate")
	}
	if k, known := t.find(id); known && (k.key == nil) == (leaf != nil) {
		return k, nil
	}
	return PublicKey{}, fmt.Errorf("%w: %s", ErrStranger, id)
}

// verify verifies a signature of a key, whatever certificate is beside it.
func (p PublicKey) verify(b *bundle.Bundle) error {
	if b.GetVerificationMaterial().GetPublicKey() == nil {
		plain := proto.CloneOf(b.Bundle)
		plain.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: p.ID}}
		var err error
		if b, err = bundle.NewBundle(plain); err != nil {
			return err
		}
	}
	verifier, err := signature.LoadECDSAVerifier(p.key, crypto.SHA256)
	if err != nil {
		return err
	}
	never := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterialFromMapping(map[string]*root.ExpiringKey{p.ID: never})
	return verified(b, material, verify.WithKey(), verify.WithNoObserverTimestamps())
}

// verifyCertified verifies a signature with a certificate of an identity. A time stamp has
// to prove that the certificate was valid. Certificate and signature have to be in a log
// of their kind, if the roots name one.
func (p PublicKey) verifyCertified(b *bundle.Bundle) error {
	who, err := verify.NewShortCertificateIdentity(p.issuer, "", p.subject, "")
	if err != nil {
		return err
	}
	required := []verify.VerifierOption{verify.WithSignedTimestamps(1)}
	if len(p.roots.CTLogs()) > 0 {
		required = append(required, verify.WithSignedCertificateTimestamps(1))
	}
	if len(p.roots.RekorLogs()) > 0 {
		required = append(required, verify.WithTransparencyLog(1))
	}
	return verified(b, p.roots, verify.WithCertificateIdentity(who), required...)
}

// verified lets Sigstore's verifier judge the signature of a bundle.
func verified(b *bundle.Bundle, material root.TrustedMaterial, by verify.PolicyOption, required ...verify.VerifierOption) error {
	v, err := verify.NewVerifier(material, required...)
	if err == nil {
		_, err = v.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), by))
	}
	if err != nil {
		return fmt.Errorf("the signature is invalid: %w", err)
	}
	return nil
}

// ErrStranger means that an untrusted key signed a statement.
var ErrStranger = errors.New("an untrusted key signed it")
