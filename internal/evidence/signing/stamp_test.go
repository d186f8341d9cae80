package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"

	"builder/internal/base/diag"
)

// A tsa is a timestamp authority with a clock of its own.
type tsa struct {
	url, chain string // chain is the file of its certificates
	now        time.Time
	wrong      bool // stamps other bytes
}

func newTSA(t *testing.T) *tsa {
	t.Helper()
	a := &tsa{chain: filepath.Join(t.TempDir(), "tsa.pem"), now: time.Now()}
	root, rootKey := certificate(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}) // time stamping
	if err != nil {
		t.Fatal(err)
	}
	leaf, key := certificate(t, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, root, rootKey)
	var data []byte
	for _, c := range []*x509.Certificate{leaf, root} {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	if err := os.WriteFile(a.chain, data, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req, err2 := timestamp.ParseRequest(body)
		if errors.Join(err, err2) != nil || r.Header.Get("Content-Type") != "application/timestamp-query" {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		if a.wrong {
			req.HashedMessage[0] ^= 1
		}
		stamp := timestamp.Timestamp{
			HashAlgorithm: req.HashAlgorithm, HashedMessage: req.HashedMessage, Time: a.now, Nonce: req.Nonce,
			Policy: asn1.ObjectIdentifier{1, 2, 3}, AddTSACertificate: req.Certificates,
		}
		answer, err := stamp.CreateResponseWithOpts(leaf, key, crypto.SHA256)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

func certificate(t *testing.T, of, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of.SerialNumber, of.Subject, of.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}, true
	of.NotBefore, of.NotAfter = time.Now().AddDate(-5, 0, 0), time.Now().AddDate(5, 0, 0)
	if issuer == nil {
		issuer, by = of, key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, issuer, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}

// trust reads a trust file with the key, whose last day was some days ago, and the
// certificates of the authorities.
func (a *tsa) trust(t *testing.T, k Key, daysAgo int, authorities ...*tsa) Trust {
	t.Helper()
	dir := t.TempDir()
	p := k.Public()
	p.NotAfter = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -daysAgo)
	var names []string
	for _, x := range authorities {
		names = append(names, x.chain)
	}
	text := "keys:\n  - {key: key.pub}\ntimestamps: [" + strings.Join(names, ", ") + "]\n"
	if err := errors.Join(p.Write(filepath.Join(dir, "key.pub")), os.WriteFile(filepath.Join(dir, "trust.yaml"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	trust, err := ReadTrusted(filepath.Join(dir, "trust.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	trust.Now = time.Now()
	return trust
}

func stamped(t *testing.T, k Key, a *tsa) []byte {
	t.Helper()
	k, err := k.Stamped(a.url)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, k, statement)
}

// A signature of an expired key counts only if an accepted authority stamped it on or
// before the last day.
func TestExpiredKey(t *testing.T) {
	k, a, other := newTestKey(t, time.Time{}), newTSA(t), newTSA(t)
	a.now = time.Now().AddDate(0, 0, -30)
	early, plain, foreign := stamped(t, k, a), signed(t, k, statement), stamped(t, k, other)
	a.now = time.Now()
	late := stamped(t, k, a)
	withTokenOf := func(data, token []byte) []byte {
		t.Helper()
		var to, from map[string]any
		if err := errors.Join(json.Unmarshal(data, &to), json.Unmarshal(token, &from)); err != nil {
			t.Fatal(err)
		}
		to["verificationMaterial"].(map[string]any)["timestampVerificationData"] = from["verificationMaterial"].(map[string]any)["timestampVerificationData"]
		out, err := json.Marshal(to)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		trust Trust
		data  []byte
		says  string // "" if it counts
	}{
		"a stamp before the end":             {a.trust(t, k, 10, a), early, ""},
		"one of two authorities":             {a.trust(t, k, 10, other, a), early, ""},
		"a stamp on the last day":            {a.trust(t, k, 30, a), early, ""},
		"a key that has not expired":         {a.trust(t, k, 0, a), plain, ""},
		"a stamp that nobody needs":          {a.trust(t, k, 0), foreign, ""},
		"no stamp":                           {a.trust(t, k, 10, a), plain, "no time stamp proves an earlier signature"},
		"a stamp after the end":              {a.trust(t, k, 10, a), late, "tsa.pem stamped it on " + time.Now().UTC().Format(time.DateOnly)},
		"a stamp of an unknown authority":    {a.trust(t, k, 10, a), foreign, "its time stamp proves no earlier signature"},
		"no authority accepted":              {a.trust(t, k, 10), early, "the trust file names no authority under timestamps"},
		"the stamp of another signature":     {a.trust(t, k, 10, a), withTokenOf(plain, early), "its time stamp proves no earlier signature"},
		"an early stamp of another key":      {a.trust(t, newTestKey(t, time.Time{}), 10, a), early, "untrusted key signed it"},
		"a wrong signature with an old time": {a.trust(t, k, 10, a), []byte(strings.Replace(string(early), `"sig":"`, `"sig":"AAAA`, 1)), "the signature is invalid"},
	} {
		got, err := c.trust.Open(c.data)
		switch {
		case c.says == "" && (err != nil || string(got.Statement) != statement):
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || got.Statement != nil):
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// A damaged time stamp proves no other time than the one that the authority signed,
// whatever its damage.
func TestDamagedStamps(t *testing.T) {
	k, a := newTestKey(t, time.Time{}), newTSA(t)
	a.now = time.Now().AddDate(0, 0, -30)
	var b struct {
		VerificationMaterial struct {
			TimestampVerificationData struct {
				Rfc3161Timestamps []struct{ SignedTimestamp []byte }
			}
		}
		DsseEnvelope struct{ Signatures []struct{ Sig []byte } }
	}
	if err := json.Unmarshal(stamped(t, k, a), &b); err != nil || len(b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	token := b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps[0].SignedTimestamp
	chain, err := os.ReadFile(a.chain)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := parseAuthority(a.chain, chain)
	if err != nil {
		t.Fatal(err)
	}
	for i := range token {
		for _, bad := range [][]byte{token[:i], slices.Concat(token[:i], []byte{token[i] ^ 0xff}, token[i+1:])} {
			at, err := authority.Verify(bad, b.DsseEnvelope.Signatures[0].Sig)
			if err == nil && (len(bad) < len(token) || !at.Time.Equal(a.now.Truncate(time.Second))) {
				t.Errorf("with a change of byte %d, %d bytes of %d prove %v", i, len(bad), len(token), at.Time)
			}
		}
	}
}

func TestStampingFails(t *testing.T) {
	k, a := newTestKey(t, time.Time{}), newTSA(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	a.wrong = true
	for address, says := range map[string]string{
		a.url:                  "its time stamp is about other bytes",
		gone.URL + "/?token=x": "404",
	} {
		k, err := k.Stamped(address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Sign(k, []byte(statement)); err == nil || !strings.Contains(err.Error(), says) || diag.CodeOf(err) != diag.Fetch || strings.Contains(err.Error(), "token=x") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"tsa.example.com", "ftp://tsa.example.com", "https://", "%"} {
		if _, err := k.Stamped(address); diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestParseAuthority(t *testing.T) {
	a := newTSA(t)
	chain, err := os.ReadFile(a.chain)
	if err != nil {
		t.Fatal(err)
	}
	leaf, root := pem.Decode(chain)
	for name, c := range map[string]struct{ text, says string }{
		"nothing":        {"", "expected PEM"},
		"no root":        {string(pem.EncodeToMemory(leaf)), "expected PEM"},
		"no leaf":        {string(root), "expected PEM"},
		"two leaves":     {string(chain) + string(chain), "two certificates that are not of a CA"},
		"a private key":  {string(chain) + string(privatePEM(t, newTestKey(t, time.Time{}))), "other than certificates"},
		"text after it":  {string(chain) + "hunter2", "expected PEM"},
		"no certificate": {string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})), "reading a certificate"},
	} {
		if _, err := parseAuthority(a.chain, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
