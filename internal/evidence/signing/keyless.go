package signing

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	fulcio "github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/proto"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/web"
)

// A certifier gets certificates for the key of one process from Fulcio. It asks again
// shortly before a certificate ends.
type certifier struct {
	fulcio *sign.Fulcio
	token  func(context.Context) (string, error)
	last   []byte
	until  time.Time
}

// Keyless returns a key of this process alone. Fulcio at an address certifies it for the
// identity in a token.
func Keyless(address string, token func(context.Context) (string, error)) (Key, error) {
	u, err := url.Parse(address)
	if err != nil || !web.Private(u) {
		return Key{}, diag.Errorf(diag.Usage, "--keyless: %q is not an https URL of a certificate authority, and only over https may the token of the job go there", diag.Redact(address)).
			WithHint("write the address of a Fulcio, such as https://fulcio.sigstore.dev")
	}
	k, err := NewKey(time.Time{})
	k.certifier = &certifier{token: token, fulcio: sign.NewFulcio(&sign.FulcioOptions{
		BaseURL: strings.TrimRight(address, "/"), Timeout: stampTime, Retries: stampRetries, Transport: web.Firm(),
	})}
	return k, err
}

// GetCertificate implements [sign.CertificateProvider].
func (c *certifier) GetCertificate(ctx context.Context, k sign.Keypair, _ *sign.CertificateProviderOptions) ([]byte, error) {
	if time.Until(c.until) > time.Minute {
		return c.last, nil
	}
	token, err := c.token(ctx)
	if err != nil {
		return nil, err
	}
	der, err := c.fulcio.GetCertificate(ctx, k, &sign.CertificateProviderOptions{IDToken: token})
	if err != nil {
		return nil, fmt.Errorf("asking for a certificate: %w", web.WithoutAddress(err))
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	if key, ok := own.PublicKey.(*ecdsa.PublicKey); !ok || !key.Equal(k.GetPublicKey()) {
		return nil, errors.New("the certificate is about another key")
	}
	c.last, c.until = der, own.NotAfter
	return der, nil
}

// maxToken limits an identity token, in bytes.
const maxToken = 64 << 10

// Token returns an identity token for Sigstore: SIGSTORE_ID_TOKEN, the content of the file
// in SIGSTORE_ID_TOKEN_FILE, or a new one of a job of GitHub Actions.
func Token(env func(string) string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if token := env("SIGSTORE_ID_TOKEN"); token != "" {
			return token, nil
		}
		if path := env("SIGSTORE_ID_TOKEN_FILE"); path != "" {
			data, err := regular.ReadFollowed(path, maxToken)
			return strings.TrimSpace(string(data)), err
		}
		if address := env("ACTIONS_ID_TOKEN_REQUEST_URL"); address != "" {
			return ofActions(ctx, address, env("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
		}
		return "", errors.New("no identity token: set SIGSTORE_ID_TOKEN or SIGSTORE_ID_TOKEN_FILE, or give the job of GitHub Actions the permission id-token: write")
	}
}

// ofActions asks GitHub Actions for a token.
func ofActions(ctx context.Context, address, bearer string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || !web.Private(u) {
		return "", errors.New("ACTIONS_ID_TOKEN_REQUEST_URL is not an https URL")
	}
	q := u.Query()
	q.Set("audience", "sigstore")
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", web.WithoutAddress(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	client := web.Client(web.Stay)
	client.Timeout = stampTime
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking GitHub Actions for a token: %w", web.WithoutAddress(err))
	}
	defer resp.Body.Close()
	var answer struct {
		Value string `json:"value"`
	}
	data, err := regular.All(resp.Body, maxToken)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err == nil && answer.Value == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		return "", fmt.Errorf("asking GitHub Actions for a token: %w", err)
	}
	return answer.Value, nil
}

// An identity signs with certificates instead of a key.
type identity struct {
	issuer, subject string
	roots           root.TrustedMaterial
}

func (i identity) String() string { return i.subject + " of " + i.issuer }

// parseIdentity reads an identity of a trust file. Its roots are a trusted_root.json of
// Sigstore, or the certificates of a CA in PEM.
func parseIdentity(path string, data []byte, issuer, subject string) (PublicKey, error) {
	i := &identity{issuer: issuer, subject: subject}
	if issuer == "" || subject == "" {
		return PublicKey{}, errors.New("an identity has an issuer, a subject and roots")
	}
	var err error
	if len(data) > 0 && data[0] == '{' {
		i.roots, err = root.NewTrustedRootFromJSON(data)
	} else {
		i.roots, err = parseCA(data)
	}
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: expected a trusted_root.json, or PEM of the certificates of a CA: %w", path, err)
	}
	return PublicKey{ID: i.String(), identity: i}, nil
}

// A caMaterial is a CA in the form of Sigstore's verifier.
type caMaterial struct {
	root.BaseTrustedMaterial
	ca root.FulcioCertificateAuthority
}

// FulcioCertificateAuthorities implements [root.TrustedMaterial].
func (m *caMaterial) FulcioCertificateAuthorities() []root.CertificateAuthority {
	return []root.CertificateAuthority{&m.ca}
}

// parseCA reads the certificates of a CA in PEM. The last one is the root.
func parseCA(data []byte) (root.TrustedMaterial, error) {
	m := &caMaterial{}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, errors.New("it holds something other than certificates")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !c.IsCA {
			return nil, errors.New("a certificate is not of a CA")
		}
		if m.ca.Root != nil {
			m.ca.Intermediates = append(m.ca.Intermediates, m.ca.Root)
		}
		m.ca.Root = c
	}
	if m.ca.Root == nil || len(strings.TrimSpace(string(data))) > 0 {
		return nil, errors.New("it holds no certificate")
	}
	return m, nil
}

// accepted is the material for the certificates of one identity: its roots, with the
// timestamp authorities of the trust file too.
type accepted struct {
	root.TrustedMaterial
	authorities []root.TimestampingAuthority
}

// TimestampingAuthorities implements [root.TrustedMaterial].
func (a accepted) TimestampingAuthorities() []root.TimestampingAuthority { return a.authorities }

// openCertified verifies a signature with a certificate, and returns the id of the key or
// identity that made it.
func (t Trust) openCertified(b *bundle.Bundle, leaf *x509.Certificate) (id string, err error) {
	if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); ok && key.Curve == elliptic.P256() {
		// A trusted key needs no certificate: that of this process, which made the bundle.
		if own, err := newPublicKey(key, headers{}); err == nil {
			if _, known := t.Find(own.ID); known {
				return own.ID, t.verifyKey(b, own.ID)
			}
		}
	}
	says, err := fulcio.SummarizeCertificate(leaf)
	if err != nil {
		return "", fmt.Errorf("reading its certificate: %w", err)
	}
	claimed := identity{issuer: says.Issuer, subject: says.SubjectAlternativeName}.String()
	k, known := t.Find(claimed)
	if !known || k.identity == nil {
		return "", Stranger{claimed}
	}
	authorities := slices.Concat(t.Authorities, k.identity.roots.TimestampingAuthorities())
	stamps, err := b.Timestamps()
	switch {
	case err != nil:
		return "", err
	case len(stamps) == 0:
		return "", fmt.Errorf("it was signed with a certificate of %s, and no time stamp proves when", k)
	case len(authorities) == 0:
		return "", errors.New("it has a time stamp, and the trust file names no authority under timestamps")
	}
	material := accepted{k.identity.roots, authorities}
	at, refused, err := verify.VerifySignedTimestamp(b, material)
	if err != nil || len(at) == 0 {
		return "", fmt.Errorf("its time stamp does not count: %w", errors.Join(append(refused, err)...))
	}
	for _, stamp := range at {
		if stamp.Time.Before(leaf.NotBefore) || stamp.Time.After(leaf.NotAfter) {
			return "", fmt.Errorf("its certificate was valid from %s to %s, and it was stamped at %s",
				leaf.NotBefore.UTC().Format(time.DateTime), leaf.NotAfter.UTC().Format(time.DateTime), stamp.Time.UTC().Format(time.DateTime))
		}
		if _, err := verify.VerifyLeafCertificate(stamp.Time, leaf, material); err != nil {
			return "", fmt.Errorf("its certificate is not of the CA that the trust file names for %s: %w", k, err)
		}
	}
	options := []verify.VerifierOption{verify.WithSignedTimestamps(1)}
	if len(k.identity.roots.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	verifier, err := verify.NewVerifier(material, options...)
	if err != nil {
		return "", err
	}
	who, err := verify.NewShortCertificateIdentity(k.identity.issuer, "", k.identity.subject, "")
	if err != nil {
		return "", err
	}
	if _, err := verifier.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithCertificateIdentity(who))); err != nil {
		return "", fmt.Errorf("the signature is invalid: %w", err)
	}
	return k.ID, nil
}

// verifyKey verifies a signature with a trusted key, whatever certificate is beside it.
func (t Trust) verifyKey(b *bundle.Bundle, id string) error {
	if b.GetVerificationMaterial().GetPublicKey() == nil {
		plain := proto.CloneOf(b.Bundle)
		plain.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: id}}
		var err error
		if b, err = bundle.NewBundle(plain); err != nil {
			return err
		}
	}
	verifier, err := verify.NewVerifier(t.material(), verify.WithNoObserverTimestamps())
	if err != nil {
		return err
	}
	if _, err := verifier.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey())); err != nil {
		return fmt.Errorf("the signature is invalid: %w", err)
	}
	return nil
}

// Certified reports whether a certificate for the identity of a job replaces the key. The
// identity is known only after it signed.
func (k Key) Certified() bool { return k.certifier != nil }
