package signing

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestKeyless(t *testing.T) {
	s := newSigstore(t)
	k := s.key(t, false)
	var data []byte
	for range 3 {
		data = signed(t, k, statement)
	}
	check.That(t, s.asked == 1, "%d certificates for one process", s.asked)
	trust := s.trusts(t, s.roots(t, nil, nil))
	got, err := trust.Open(data)
	must.Hold(t, err == nil && string(got.Statement) == statement && got.KeyID == s.subject+" of "+s.issuer, "%q, %v", got.KeyID, err)
	// The process that signed trusts its own key, whatever the certificate.
	got, err = (Trust{Keys: []PublicKey{k.Public()}}).Open(data)
	check.That(t, err == nil && got.KeyID == k.Public().ID, "%q, %v", got.KeyID, err)
	// An old certificate is replaced.
	s.until = time.Now().Add(30 * time.Second)
	k.services.CertificateProvider.(*certifier).until = time.Time{}
	for range 2 {
		signed(t, k, statement)
	}
	check.That(t, s.asked == 3, "%d certificates, want 3", s.asked)
}

// A signature of an identity counts if the CA, the authority and the logs of its roots
// prove it, and only for exactly this identity.
func TestKeylessRefuses(t *testing.T) {
	s, other, late := newSigstore(t), newSigstore(t), newSigstore(t)
	late.now = time.Now().Add(time.Hour)
	plain := s.roots(t, nil, nil)
	logged := s.roots(t, s.rekor.RekorLogs(), nil)
	certified := s.roots(t, nil, s.rekor.CTLogs())
	elsewhere := s.roots(t, other.rekor.RekorLogs(), nil)
	is := func(issuer, subject string) Trust {
		return trustIn(t, "issuer: '%s', subject: '%s', roots: '%s'", issuer, subject, plain)
	}
	stampedBy := func(a *sigstore) []byte {
		k := must.Get(Keyless(Services{Fulcio: s.url, Timestamp: a.url + "/stamp"}, tokenOf))(t)
		return signed(t, k, statement)
	}
	unstamped := s.key(t, false)
	unstamped.services.TimestampAuthorities = nil
	data, inLog, second := signed(t, s.key(t, false), statement), signed(t, s.key(t, true), statement), signed(t, s.key(t, true), statement)
	lateTSA := &sigstore{ca: s.ca, tsa: late.tsa}
	for name, c := range map[string]struct {
		data  []byte
		trust Trust
		want  string // "" if it counts
	}{
		"logged, and the roots name the log": {inLog, s.trusts(t, logged), ""},
		"logged, and they name none":         {inLog, s.trusts(t, plain), ""},
		"not logged":                         {data, s.trusts(t, logged), "failed to verify log inclusion"},
		"logged elsewhere":                   {inLog, s.trusts(t, elsewhere), "failed to verify log inclusion"},
		"the entry of another signature":     {with(t, "tlogEntries", data, inLog), s.trusts(t, logged), "failed to verify log inclusion"},
		"the entry of another logged one":    {with(t, "tlogEntries", second, inLog), s.trusts(t, logged), "failed to verify log inclusion"},
		"a certificate in no log":            {data, s.trusts(t, certified), "signed certificate timestamp"},
		"another subject":                    {data, is(s.issuer, "https://example.com/wheels/evil.yml@refs/heads/main"), "an untrusted key signed it: " + s.subject + " of " + s.issuer},
		"another issuer":                     {data, is("https://evil.example.com", s.subject), "an untrusted key signed it"},
		"a part of the subject":              {data, is(s.issuer, "https://example.com/wheels/build.yml"), "an untrusted key signed it"},
		"another CA":                         {data, s.trusts(t, (&sigstore{ca: other.ca, tsa: s.tsa}).roots(t, nil, nil)), "failed to verify leaf certificate"},
		"no stamp":                           {signed(t, unstamped, statement), s.trusts(t, plain), "threshold not met for verified signed timestamps"},
		"the stamp of another signature":     {with(t, "timestampVerificationData", data, inLog), s.trusts(t, plain), "threshold not met for verified signed timestamps"},
		"another authority":                  {stampedBy(other), s.trusts(t, plain), "threshold not met for verified signed timestamps"},
		"stamped too late":                   {stampedBy(late), s.trusts(t, lateTSA.roots(t, nil, nil)), "failed to verify leaf certificate"},
		"another statement":                  {[]byte(strings.Replace(string(data), `"payload":"`, `"payload":"AAAA`, 1)), s.trusts(t, plain), "the signature is invalid"},
		"no identity at all":                 {data, Trust{}, "an untrusted key signed it"},
	} {
		got, err := c.trust.Open(c.data)
		switch {
		case c.want == "" && (err != nil || string(got.Statement) != statement):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || got.Statement != nil):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A key whose id is the name of an identity is not that identity.
	impostor := newTestKey(t)
	impostor.public.ID = s.subject + " of " + s.issuer
	_, err := s.trusts(t, plain).Open(signed(t, impostor, statement))
	check.That(t, errors.Is(err, ErrStranger), "%v", err)
	s.broken = true
	_, err = Sign(s.key(t, false), []byte(statement))
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "the certificate is about another key"), "%v", err)
}

// A service that does not answer, and an address that is none, is named.
func TestServicesFail(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	s := newSigstore(t)
	good := Services{Fulcio: s.url, Timestamp: s.url + "/stamp"}
	stamp, log := good, good
	stamp.Timestamp, log.Rekor = gone.URL+"/?token=x", gone.URL
	for _, services := range []Services{stamp, log} {
		k := must.Get(Keyless(services, tokenOf))(t)
		if _, err := Sign(k, []byte(statement)); diag.CodeOf(err) != diag.Fetch || !strings.Contains(err.Error(), "signing without a key: ") || strings.Contains(err.Error(), "token=x") {
			t.Errorf("%v", err)
		}
	}
	refused := func(services Services) {
		t.Helper()
		_, err := Keyless(services, tokenOf)
		check.That(t, diag.CodeOf(err) == diag.Usage, "%+v: %v", services, err)
	}
	for _, address := range []string{"tsa.example.com", "ftp://tsa.example.com", "https://", "%"} {
		stamp.Timestamp, log.Rekor = address, address
		refused(stamp)
		refused(log)
	}
	for _, address := range []string{"fulcio", "http://fulcio.example.com", "http://10.0.0.1:80", "http://localhost.example.com", "ftp://127.0.0.1", "https:///x"} {
		refused(Services{Fulcio: address, Timestamp: good.Timestamp})
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
		k, err := Keyless(Services{Fulcio: server.URL, Timestamp: server.URL}, tokenOf)
		if err == nil {
			_, err = Sign(k, []byte(statement))
		}
		server.Close()
		check.Fails(t, err, "redirects to another host", code)
	}
	token := Token(func(name string) string {
		return map[string]string{"ACTIONS_ID_TOKEN_REQUEST_URL": "http://token.example.com/x", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job"}[name]
	})
	_, err := token(t.Context())
	check.Fails(t, err, "not an https URL")
	check.That(t, len(seen) == 0, "another server was asked with %q", seen)
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
	for name, c := range map[string]struct {
		env        map[string]string
		want, says string
	}{
		"variable": {map[string]string{"SIGSTORE_ID_TOKEN": "plain"}, "plain", ""},
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
