package signing

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"builder/internal/base/diag"
)

// A testFulcio certifies every key for one identity. The real one judges the same
// signatures in make conformance.
type testFulcio struct {
	url, roots      string
	issuer, subject string
	until           time.Time
	asked           int
	broken          bool // certifies another key
}

func newFulcio(t *testing.T) *testFulcio {
	t.Helper()
	f := &testFulcio{
		roots: filepath.Join(t.TempDir(), "ca.pem"), issuer: "https://token.example.com",
		subject: "https://example.com/wheels/build.yml@refs/heads/main", until: time.Now().Add(10 * time.Minute),
	}
	ca, key := certificate(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	if err := os.WriteFile(f.roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked++
		var ask struct {
			PublicKeyRequest struct{ PublicKey struct{ Content string } }
		}
		err := json.NewDecoder(r.Body).Decode(&ask)
		block, _ := pem.Decode([]byte(ask.PublicKeyRequest.PublicKey.Content))
		if err != nil || block == nil || r.Header.Get("Authorization") != "Bearer "+testToken {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if f.broken {
			public = key.Public()
		}
		san, err2 := url.Parse(f.subject)
		issuer, err3 := asn1.MarshalWithParams(f.issuer, "utf8")
		der, err4 := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(7), NotBefore: f.until.Add(-10 * time.Minute), NotAfter: f.until, URIs: []*url.URL{san},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: issuer}},
		}, ca, public, key)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{
			"certificates": []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))},
		}}})
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

var testToken = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://token.example.com","sub":"job"}`)) + ".sig"

func tokenOf(context.Context) (string, error) { return testToken, nil }

// keylessKey returns a key that f certifies and a stamps.
func (f *testFulcio) key(t *testing.T, a *tsa) Key {
	t.Helper()
	k, err := Keyless(f.url+"/", tokenOf)
	if err == nil && a != nil {
		k, err = k.Stamped(a.url)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// trusts returns the trust of a file with one identity.
func (f *testFulcio) trusts(t *testing.T, a *tsa, change ...string) Trust {
	t.Helper()
	text := "keys:\n  - issuer: " + f.issuer + "\n    subject: " + f.subject + "\n    roots: " + f.roots + "\n    roles: [builder]\ntimestamps: [" + a.chain + "]\n"
	path := filepath.Join(t.TempDir(), "trust.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(change...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	trust, err := ReadTrusted(path)
	if err != nil {
		t.Fatal(err)
	}
	trust.Now = time.Now().AddDate(5, 0, 0)
	return trust
}

func TestKeyless(t *testing.T) {
	f, a := newFulcio(t), newTSA(t)
	k := f.key(t, a)
	var data []byte
	for range 3 {
		var err error
		if data, err = Sign(k, []byte(statement)); err != nil {
			t.Fatal(err)
		}
	}
	if f.asked != 1 {
		t.Errorf("%d certificates for one process", f.asked)
	}
	signed, err := f.trusts(t, a).Open(data)
	if err != nil || string(signed.Statement) != statement || signed.KeyID != f.subject+" of "+f.issuer {
		t.Fatalf("%q, %v", signed.KeyID, err)
	}
	by, ok := f.trusts(t, a).Find(signed.KeyID)
	if !ok || !by.Grant.May(Maker) || by.Grant.May(GateHost) || by.String() != signed.KeyID {
		t.Errorf("%+v", by)
	}
	// The process that signed trusts its own key, whatever the certificate.
	if signed, err := (Trust{Keys: []PublicKey{k.Public()}, Now: time.Now()}).Open(data); err != nil || signed.KeyID != k.Public().ID {
		t.Errorf("%q, %v", signed.KeyID, err)
	}
	// An old certificate is replaced.
	f.until = time.Now().Add(30 * time.Second)
	k.certifier.until = time.Time{}
	for range 2 {
		if _, err := Sign(k, []byte(statement)); err != nil {
			t.Fatal(err)
		}
	}
	if f.asked != 3 {
		t.Errorf("%d certificates, want 3", f.asked)
	}
}

func TestKeylessRefuses(t *testing.T) {
	f, a := newFulcio(t), newTSA(t)
	sign := func(k Key) []byte {
		t.Helper()
		data, err := Sign(k, []byte(statement))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data := sign(f.key(t, a))
	late := newTSA(t)
	late.now = time.Now().Add(time.Hour)
	other := newFulcio(t)
	for name, c := range map[string]struct {
		data  []byte
		trust Trust
		want  string
	}{
		"another subject":       {data, f.trusts(t, a, "build.yml", "evil.yml"), "an untrusted key signed it: https://example.com/wheels/build.yml@refs/heads/main of https://token.example.com"},
		"another issuer":        {data, f.trusts(t, a, "token.example.com", "evil.example.com"), "an untrusted key signed it"},
		"a part of the subject": {data, f.trusts(t, a, "@refs/heads/main", ""), "an untrusted key signed it"},
		"another CA":            {data, f.trusts(t, a, f.roots, other.roots), "its certificate is not of the CA that the trust file names for https://example.com/wheels/build.yml"},
		"no stamp":              {sign(f.key(t, nil)), f.trusts(t, a), "no time stamp proves when"},
		"no authority":          {data, f.trusts(t, a, a.chain, ""), "the trust file names no authority under timestamps"},
		"another authority":     {data, f.trusts(t, late), "its time stamp does not count"},
		"stamped too late":      {sign(f.key(t, late)), f.trusts(t, late), "its certificate was valid from "},
		"another statement":     {[]byte(strings.Replace(string(data), `"payload":"`, `"payload":"AAAA`, 1)), f.trusts(t, a), "the signature is invalid"},
		"no identity at all":    {data, Trust{Now: time.Now()}, "an untrusted key signed it"},
	} {
		if signed, err := c.trust.Open(c.data); err == nil || !strings.Contains(err.Error(), c.want) || signed.Statement != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A key whose id is the name of an identity is not that identity.
	plain, err := NewKey(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	plain.public.ID = f.subject + " of " + f.issuer
	if _, err := f.trusts(t, a).Open(sign(plain)); !errors.Is(err, ErrStranger) {
		t.Errorf("%v", err)
	}
	// A certificate does not lengthen the life of a key.
	k := f.key(t, nil)
	old := k.Public()
	old.NotAfter = time.Now().AddDate(0, 0, -2)
	if _, err := (Trust{Keys: []PublicKey{old}, Now: time.Now()}).Open(sign(k)); err == nil || !strings.Contains(err.Error(), "the last day of its key was") {
		t.Errorf("%v", err)
	}
	f.broken = true
	if _, err := Sign(f.key(t, a), []byte(statement)); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "the certificate is about another key") {
		t.Errorf("%v", err)
	}
	for _, address := range []string{"fulcio", "http://fulcio.example.com", "http://10.0.0.1:80", "http://localhost.example.com", "ftp://127.0.0.1", "https:///x"} {
		if _, err := Keyless(address, tokenOf); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The token of a job goes to the named address only, and over TLS or to this host.
func TestTokenGoesNowhereElse(t *testing.T) {
	var seen []string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(thief.URL, code))
		k, err := Keyless(server.URL, tokenOf)
		if err == nil {
			_, err = Sign(k, []byte(statement))
		}
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "answers with a redirect") {
			t.Errorf("%d: %v", code, err)
		}
	}
	token := Token(func(name string) string {
		return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": "http://token.example.com/x", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job"}[name]
	})
	if _, err := token(t.Context()); err == nil || !strings.Contains(err.Error(), "not an https URL") {
		t.Errorf("got %v", err)
	}
	if len(seen) > 0 {
		t.Errorf("another server was asked with %q", seen)
	}
}

// A trusted_root.json brings its own CA and timestamp authority. If it names a log of
// certificates, a certificate that is in none does not count.
func TestTrustedRoot(t *testing.T) {
	f, a := newFulcio(t), newTSA(t)
	data, err1 := Sign(f.key(t, a), []byte(statement))
	pemCA, err2 := os.ReadFile(f.roots)
	pemTSA, err3 := os.ReadFile(a.chain)
	ca, err4 := parseCA(pemCA)
	authority, err5 := parseAuthority(a.chain, pemTSA)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	log := &root.TransparencyLog{
		BaseURL: "https://ct.example.com", ID: []byte("log"), ValidityPeriodStart: time.Now().AddDate(-1, 0, 0),
		HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: newTestKey(t, time.Time{}).public.key,
	}
	for says, logs := range map[string]map[string]*root.TransparencyLog{"": nil, "signed certificate timestamp": {"6c6f67": log}} {
		r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, ca.FulcioCertificateAuthorities(), logs, []root.TimestampingAuthority{authority}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.MarshalJSON()
		file := filepath.Join(t.TempDir(), "trusted_root.json")
		if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		signed, err := f.trusts(t, a, f.roots, file, a.chain, "").Open(data)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) || err == nil && string(signed.Statement) != statement {
			t.Errorf("with %d logs: %v; want %q", len(logs), err, says)
		}
	}
}

func TestIdentitiesOfATrustFile(t *testing.T) {
	f := newFulcio(t)
	plain := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(plain, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no subject":      {"issuer: https://i, roots: " + f.roots, "an identity has an issuer, a subject and roots"},
		"no roots":        {"issuer: https://i, subject: s", "trust.yaml:2:5: "},
		"key and subject": {"key: a.pub, subject: s", "name a key, or an issuer, a subject and roots"},
		"no certificates": {"issuer: https://i, subject: s, roots: " + plain, "expected a trusted_root.json, or PEM of the certificates of a CA"},
	} {
		path := filepath.Join(t.TempDir(), "trust.yaml")
		if err := os.WriteFile(path, []byte("keys:\n  - {"+c.text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTrusted(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer job" || r.URL.Query().Get("audience") != "sigstore" || r.URL.Query().Get("v") != "2":
			http.Error(w, "no", http.StatusForbidden)
		case r.URL.Path == "/empty":
			_, _ = w.Write([]byte(`{}`))
		default:
			_, _ = w.Write([]byte(`{"value":"of-actions"}`))
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env        map[string]string
		want, says string
	}{
		"variable": {map[string]string{"SIGSTORE_ID_TOKEN": "plain"}, "plain", ""},
		"file":     {map[string]string{"SIGSTORE_ID_TOKEN_FILE": file}, "of-file", ""},
		"actions":  {map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "/x?v=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job"}, "of-actions", ""},
		"refused":  {map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "/x?v=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "other"}, "", "403"},
		"empty":    {map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": server.URL + "/empty?v=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job"}, "", "the answer has no token"},
		"none":     {nil, "", "no identity token"},
	} {
		got, err := Token(func(name string) string { return c.env[name] })(t.Context())
		if got != c.want || (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "job")) && name != "none" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
