package signing

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/sign"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
	"builder/internal/base/web"
)

// Limits of asking a service of Sigstore.
const (
	askTime    = 30 * time.Second
	askRetries = 3
)

// Services are the addresses of the services that make a signature without a key.
type Services struct {
	Fulcio    string // certifies the identity of a job
	Timestamp string // timestamp authority (RFC 3161), which proves when the certificate was used
	Rekor     string // logs every signature; "" for no log
}

// check returns an error for an address that is none.
func (s Services) check() error {
	if u, err := url.Parse(s.Fulcio); err != nil || !web.Private(u) {
		return diag.Errorf(diag.Usage, "--keyless: %q is not an https URL of a certificate authority, and only over https may the token of the job go there", diag.Redact(s.Fulcio)).
			WithHint("write the address of a Fulcio, such as https://fulcio.sigstore.dev")
	}
	if !isURL(s.Timestamp) {
		return diag.Errorf(diag.Usage, "--timestamp: %q is not the URL of a timestamp authority", diag.Redact(s.Timestamp)).
			WithHint("write the address that takes its requests, such as https://tsa.example.com/api/v1/timestamp")
	}
	if s.Rekor != "" && !isURL(s.Rekor) {
		return diag.Errorf(diag.Usage, "--rekor: %q is not the URL of a log", diag.Redact(s.Rekor)).
			WithHint("write the address of a Rekor, such as https://rekor.sigstore.dev")
	}
	return nil
}

func isURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Keyless returns a key of this process alone. The services certify it for the identity in
// a token, and stamp and log its signatures.
func Keyless(s Services, token func(context.Context) (string, error)) (Key, error) {
	if err := s.check(); err != nil {
		return Key{}, err
	}
	k, err := NewKey()
	k.services.CertificateProvider = &certifier{token: token, fulcio: sign.NewFulcio(&sign.FulcioOptions{
		BaseURL: strings.TrimRight(s.Fulcio, "/"), Timeout: askTime, Retries: askRetries, Transport: web.Transport(web.Options{}),
	})}
	k.services.TimestampAuthorities = []*sign.TimestampAuthority{sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{
		URL: s.Timestamp, Timeout: askTime, Retries: askRetries, Transport: web.Transport(web.Options{Plain: true}),
	})}
	if s.Rekor != "" {
		k.services.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{BaseURL: s.Rekor, Timeout: askTime, Retries: askRetries})}
	}
	return k, err
}

// A certifier gets certificates for the key of one process from Fulcio. It asks again
// shortly before a certificate ends.
type certifier struct {
	fulcio *sign.Fulcio
	token  func(context.Context) (string, error)
	last   []byte
	until  time.Time
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

// Token returns an identity token for Sigstore: SIGSTORE_ID_TOKEN, or a new one of a job of
// GitHub Actions.
func Token(env func(string) string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if token := env("SIGSTORE_ID_TOKEN"); token != "" {
			return token, nil
		}
		if address := env("ACTIONS_ID_TOKEN_REQUEST_URL"); address != "" {
			return ofActions(ctx, address, env("ACTIONS_ID_TOKEN_REQUEST_TOKEN"))
		}
		return "", errors.New("no identity token: set SIGSTORE_ID_TOKEN, or give the job of GitHub Actions the permission id-token: write")
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
	client := web.Client(web.Options{Stay: true})
	client.Timeout = askTime
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
