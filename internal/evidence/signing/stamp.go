package signing

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"

	"builder/internal/base/diag"
	"builder/internal/base/web"
)

// Stamped returns the key with the URL of a timestamp authority (RFC 3161). Every
// signature of the result gets a time stamp. An empty URL means no time stamps.
func (k Key) Stamped(address string) (Key, error) {
	u, err := url.Parse(address)
	if address != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return Key{}, diag.Errorf(diag.Usage, "--timestamp: %q is not the URL of a timestamp authority", address).
			WithHint("write the address that takes its requests, such as https://tsa.example.com/api/v1/timestamp")
	}
	k.authority = address
	return k, nil
}

// Limits of asking a timestamp authority.
const (
	stampTime    = 30 * time.Second
	stampRetries = 3
)

// options returns the options that ask the key's certifier and timestamp authority.
func (k Key) options() (o sign.BundleOptions) {
	if k.certifier != nil {
		o.CertificateProvider = k.certifier
	}
	if k.authority != "" {
		o.TimestampAuthorities = []*sign.TimestampAuthority{sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{
			URL: k.authority, Timeout: stampTime, Retries: stampRetries, Transport: web.Client(nil).Transport,
		})}
	}
	return o
}

// checkStamp returns an error if a time stamp is about another signature. The
// certificate of the authority is a matter of who verifies.
func checkStamp(token, signature []byte) error {
	t, err := timestamp.ParseResponse(token)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(signature); !bytes.Equal(t.HashedMessage, sum[:]) {
		return errors.New("its time stamp is about other bytes")
	}
	return nil
}

// ErrOver begins an error about a signature of a key after its last day.
var ErrOver = errors.New("the last day of its key")

// proven returns an error of [ErrOver] unless an accepted authority stamped a signature on or before
// the last day of its key.
func (t Trust) proven(k PublicKey, b *bundle.Bundle) error {
	over := fmt.Errorf("%w was %s: %s", ErrOver, k.NotAfter.Format(time.DateOnly), k.ID)
	found, refused, err := verify.VerifySignedTimestamp(b, &authorities{all: t.Authorities})
	for _, at := range found {
		if !k.over(at.Time) {
			return nil
		}
		refused = append(refused, fmt.Errorf("%s stamped it on %s", at.URI, at.Time.UTC().Format(time.DateOnly)))
	}
	stamps, _ := b.Timestamps()
	switch {
	case err != nil:
		return fmt.Errorf("%w; reading its time stamps: %w", over, err)
	case len(stamps) == 0:
		return fmt.Errorf("%w; no time stamp proves an earlier signature", over)
	case len(t.Authorities) == 0:
		return fmt.Errorf("%w; it has a time stamp, and the trust file names no authority under timestamps", over)
	}
	return fmt.Errorf("%w; its time stamp proves no earlier signature: %w", over, errors.Join(refused...))
}

// authorities are accepted timestamp authorities in the form of Sigstore's verifier.
type authorities struct {
	root.BaseTrustedMaterial
	all []root.TimestampingAuthority
}

// TimestampingAuthorities implements [root.TrustedMaterial].
func (a *authorities) TimestampingAuthorities() []root.TimestampingAuthority { return a.all }

// parseAuthority reads the certificates of a timestamp authority in PEM: the one that
// signs, and its issuers up to the root, which is the last.
func parseAuthority(path string, data []byte) (root.TimestampingAuthority, error) {
	a := &root.SigstoreTimestampingAuthority{URI: path}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" { // such as a private key, which no error may show
			return nil, fmt.Errorf("%s: it holds something other than certificates", path)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: reading a certificate: %w", path, err)
		case c.IsCA:
			if a.Root != nil {
				a.Intermediates = append(a.Intermediates, a.Root)
			}
			a.Root = c
		case a.Leaf != nil:
			return nil, fmt.Errorf("%s: it holds two certificates that are not of a CA; write one file for each authority", path)
		default:
			a.Leaf = c
		}
	}
	if a.Leaf == nil || a.Root == nil || len(bytes.TrimSpace(data)) > 0 {
		return nil, fmt.Errorf("%s: expected PEM of the certificate that signs time stamps, and of its issuers up to the root", path)
	}
	return a, nil
}
