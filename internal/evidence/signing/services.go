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

// Stamped returns the key with the URL of a timestamp authority (RFC 3161). Every
// signature of the result gets a time stamp. An empty URL means no time stamps.
func (k Key) Stamped(address string) (Key, error) {
	if address == "" {
		return k, nil
	}
	if !isURL(address) {
		return Key{}, diag.Errorf(diag.Usage, "--timestamp: %q is not the URL of a timestamp authority", diag.Redact(address)).
			WithHint("write the address that takes its requests, such as https://tsa.example.com/api/v1/timestamp")
	}
	k.services.TimestampAuthorities = []*sign.TimestampAuthority{sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{
		URL: address, Timeout: askTime, Retries: askRetries, Transport: web.Transport(web.Options{Plain: true}),
	})}
	return k, nil
}

// Logged returns the key with the URL of a Rekor. It logs every signature of the result.
// An empty URL means no log.
func (k Key) Logged(address string) (Key, error) {
	if address == "" {
		return k, nil
	}
	if !isURL(address) {
		return Key{}, diag.Errorf(diag.Usage, "--rekor: %q is not the URL of a log", diag.Redact(address)).
			WithHint("write the address of a Rekor, such as https://rekor.sigstore.dev")
	}
	k.services.TransparencyLogs = []sign.Transparency{sign.NewRekor(&sign.RekorOptions{BaseURL: address, Timeout: askTime, Retries: askRetries})}
	return k, nil
}

func isURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

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
	k.services.CertificateProvider = &certifier{token: token, fulcio: sign.NewFulcio(&sign.FulcioOptions{
		BaseURL: strings.TrimRight(address, "/"), Timeout: askTime, Retries: askRetries, Transport: web.Transport(web.Options{}),
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

// Certified reports whether a certificate for the identity of a job replaces the key. The
// identity is known only after it signed.
func (k Key) Certified() bool { return k.services.CertificateProvider != nil }
