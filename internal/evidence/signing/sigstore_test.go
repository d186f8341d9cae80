package signing

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"

	"builder/test/kit/must"
)

// A sigstore is a Fulcio that certifies every key for one identity, a timestamp authority
// with a clock of its own, and the Rekor of sigstore-go's tests. The real Fulcio and
// authority judge the same signatures in make conformance.
type sigstore struct {
	url             string
	issuer, subject string
	until           time.Time // end of its certificates
	now             time.Time // of its time stamps
	asked           int       // certificates
	broken          bool      // certifies another key

	ca     root.FulcioCertificateAuthority
	caKey  *ecdsa.PrivateKey
	tsa    root.SigstoreTimestampingAuthority
	tsaKey *ecdsa.PrivateKey
	rekor  *ca.VirtualSigstore
}

const testIssuer = "https://token.example.com"

var testToken = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+testIssuer+`","sub":"job"}`)) + ".sig"

func tokenOf(context.Context) (string, error) { return testToken, nil }

func newSigstore(t *testing.T) *sigstore {
	t.Helper()
	s := &sigstore{
		issuer: testIssuer, subject: "https://example.com/wheels/build.yml@refs/heads/main",
		until: time.Now().Add(10 * time.Minute), now: time.Now(),
	}
	s.ca.Root, s.caKey = certificate(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}) // time stamping
	must.Succeed(t, err)
	var rootKey *ecdsa.PrivateKey
	s.tsa.Root, rootKey = certificate(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	s.tsa.Leaf, s.tsaKey = certificate(t, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}, s.tsa.Root, rootKey)
	s.rekor = must.Get(ca.NewVirtualSigstore())(t)
	mux := http.NewServeMux()
	for path, answer := range map[string]func(http.ResponseWriter, *http.Request) error{
		"/api/v2/signingCert": s.certify, "/stamp": s.stamp, "/api/v1/log/entries": s.log,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := answer(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func certificate(t *testing.T, of, issuer *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	of.SerialNumber, of.Subject, of.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}, true
	of.NotBefore, of.NotAfter = time.Now().AddDate(-5, 0, 0), time.Now().AddDate(5, 0, 0)
	if issuer == nil {
		issuer, by = of, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, of, issuer, key.Public(), by))(t)
	c := must.Get(x509.ParseCertificate(der))(t)
	return c, key
}

// certify answers as Fulcio.
func (s *sigstore) certify(w http.ResponseWriter, r *http.Request) error {
	s.asked++
	var ask struct {
		PublicKeyRequest struct{ PublicKey struct{ Content string } }
	}
	err := json.NewDecoder(r.Body).Decode(&ask)
	block, _ := pem.Decode([]byte(ask.PublicKeyRequest.PublicKey.Content))
	if err != nil || block == nil || r.Header.Get("Authorization") != "Bearer "+testToken {
		return errors.New("no job")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if s.broken {
		public = s.caKey.Public()
	}
	san, err2 := url.Parse(s.subject)
	issuer, err3 := asn1.MarshalWithParams(s.issuer, "utf8")
	der, err4 := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), NotBefore: s.until.Add(-10 * time.Minute), NotAfter: s.until, URIs: []*url.URL{san},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: issuer}},
	}, s.ca.Root, public, s.caKey)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(map[string]any{"signedCertificateEmbeddedSct": map[string]any{"chain": map[string]any{
		"certificates": []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))},
	}}})
}

// stamp answers as a timestamp authority.
func (s *sigstore) stamp(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	req, err := timestamp.ParseRequest(body)
	if err != nil {
		return err
	}
	stamp := timestamp.Timestamp{
		HashAlgorithm: req.HashAlgorithm, HashedMessage: req.HashedMessage, Time: s.now, Nonce: req.Nonce,
		Policy: asn1.ObjectIdentifier{1, 2, 3}, AddTSACertificate: req.Certificates,
	}
	answer, err := stamp.CreateResponseWithOpts(s.tsa.Leaf, s.tsaKey, crypto.SHA256)
	if err == nil {
		_, err = w.Write(answer)
	}
	return err
}

// log answers as Rekor.
func (s *sigstore) log(w http.ResponseWriter, r *http.Request) error {
	var ask struct {
		Spec struct {
			ProposedContent struct {
				Envelope  string
				Verifiers [][]byte
			}
		}
	}
	var envelope dsse.Envelope
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(ask.Spec.ProposedContent.Envelope), &envelope); err != nil {
		return err
	}
	block, _ := pem.Decode(bytes.Join(ask.Spec.ProposedContent.Verifiers, nil))
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	entry, err := s.rekor.GenerateTlogEntry(leaf, &envelope, []byte(envelope.Signatures[0].Sig), time.Now().Unix(), true)
	if err != nil {
		return err
	}
	made := entry.TransparencyLogEntry()
	proof := made.GetInclusionProof()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", "1")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(map[string]any{"1": map[string]any{
		"body": made.GetCanonicalizedBody(), "integratedTime": made.GetIntegratedTime(), "logIndex": made.GetLogIndex(),
		"logID": hex.EncodeToString(made.GetLogId().GetKeyId()),
		"verification": map[string]any{"signedEntryTimestamp": made.GetInclusionPromise().GetSignedEntryTimestamp(), "inclusionProof": map[string]any{
			"checkpoint": proof.GetCheckpoint().GetEnvelope(), "hashes": []string{}, "logIndex": proof.GetLogIndex(),
			"rootHash": hex.EncodeToString(proof.GetRootHash()), "treeSize": proof.GetTreeSize(),
		}},
	}})
}

// key returns a key that s certifies. s stamps its signatures, and logs them if logged.
func (s *sigstore) key(t *testing.T, logged bool) Key {
	t.Helper()
	services := Services{Fulcio: s.url + "/", Timestamp: s.url + "/stamp"}
	if logged {
		services.Rekor = s.url
	}
	return must.Get(Keyless(services, tokenOf))(t)
}

// roots writes a trusted_root.json with the CA and the authority, and the logs.
func (s *sigstore) roots(t *testing.T, rekor, ct map[string]*root.TransparencyLog) string {
	t.Helper()
	s.ca.ValidityPeriodStart, s.tsa.ValidityPeriodStart = time.Now().AddDate(-1, 0, 0), time.Now().AddDate(-1, 0, 0)
	for _, logs := range []map[string]*root.TransparencyLog{rekor, ct} {
		for id, log := range logs { // sigstore-go's tests write the id in hexadecimal digits
			log.ID, _ = hex.DecodeString(id)
		}
	}
	r, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{&s.ca}, ct, []root.TimestampingAuthority{&s.tsa}, rekor)
	must.Succeed(t, err)
	text, err := r.MarshalJSON()
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	must.Succeed(t, err, os.WriteFile(file, text, 0o600))
	return file
}

// trustIn reads a trust file with one entry.
func trustIn(t *testing.T, entry string, values ...any) Trust {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trust.yaml")
	must.Succeed(t, os.WriteFile(path, []byte("keys:\n  - {"+fmt.Sprintf(entry, values...)+"}\n"), 0o600))
	keys := must.Get(ReadTrusted(path))(t)
	return Trust{Keys: keys}
}

// trusts returns the trust in the identity by roots.
func (s *sigstore) trusts(t *testing.T, roots string) Trust {
	t.Helper()
	return trustIn(t, "issuer: '%s', subject: '%s', roots: '%s'", s.issuer, s.subject, roots)
}

// with returns a bundle with a part of another one in its verification material.
func with(t *testing.T, part string, to, from []byte) []byte {
	t.Helper()
	var one, other map[string]any
	must.Succeed(t, json.Unmarshal(to, &one), json.Unmarshal(from, &other))
	one["verificationMaterial"].(map[string]any)[part] = other["verificationMaterial"].(map[string]any)[part]
	return must.Get(json.Marshal(one))(t)
}
