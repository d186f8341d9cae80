package signing

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	by, ok := trust.Find(got.KeyID)
	check.That(t, ok && by.May(Maker) && !by.May(GateHost) && by.String() == got.KeyID, "%+v", by)
	// The process that signed trusts its own key, whatever the certificate.
	if got, err := (Trust{Keys: []PublicKey{k.Public()}, Now: time.Now()}).Open(data); err != nil || got.KeyID != k.Public().ID {
		t.Errorf("%q, %v", got.KeyID, err)
	}
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
		k, err := s.key(t, false).Stamped(a.url + "/stamp")
		must.Succeed(t, err)
		return signed(t, k, statement)
	}
	unstamped, err := Keyless(s.url, tokenOf)
	must.Succeed(t, err)
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
		"no stamp":                           {signed(t, unstamped, statement), s.trusts(t, plain), "it has no time stamp"},
		"the stamp of another signature":     {with(t, "timestampVerificationData", data, inLog), s.trusts(t, plain), "threshold not met for verified signed timestamps"},
		"another authority":                  {stampedBy(other), s.trusts(t, plain), "threshold not met for verified signed timestamps"},
		"stamped too late":                   {stampedBy(late), s.trusts(t, lateTSA.roots(t, nil, nil)), "failed to verify leaf certificate"},
		"another statement":                  {[]byte(strings.Replace(string(data), `"payload":"`, `"payload":"AAAA`, 1)), s.trusts(t, plain), "the signature is invalid"},
		"no identity at all":                 {data, Trust{Now: time.Now()}, "an untrusted key signed it"},
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
	impostor := newTestKey(t, time.Time{})
	impostor.public.ID = s.subject + " of " + s.issuer
	_, err = s.trusts(t, plain).Open(signed(t, impostor, statement))
	check.That(t, errors.Is(err, ErrStranger), "%v", err)
	// A certificate does not lengthen the life of a key.
	old := unstamped.Public()
	old.NotAfter = time.Now().AddDate(0, 0, -2)
	_, err = (Trust{Keys: []PublicKey{old}, Now: time.Now()}).Open(signed(t, unstamped, statement))
	check.That(t, errors.Is(err, ErrOver), "%v", err)
	s.broken = true
	_, err = Sign(s.key(t, false), []byte(statement))
	check.That(t, diag.CodeOf(err) == diag.Fetch && strings.Contains(err.Error(), "the certificate is about another key"), "%v", err)
}

// A signature of an expired key counts only if an authority in its roots stamped it on or
// before the last day.
func TestExpiredKey(t *testing.T) {
	s, other := newSigstore(t), newSigstore(t)
	roots := s.roots(t, nil, nil)
	k := newTestKey(t, time.Time{})
	stamped := func(by *sigstore, at time.Time) []byte {
		by.now = at
		k, err := k.Stamped(by.url + "/stamp")
		must.Succeed(t, err)
		return signed(t, k, statement)
	}
	early, plain, late, foreign := stamped(s, time.Now().AddDate(0, 0, -30)), signed(t, k, statement), stamped(s, time.Now()), stamped(other, time.Now().AddDate(0, 0, -30))
	trust := func(k Key, daysAgo int, roots string) Trust {
		p := k.Public()
		p.NotAfter = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -daysAgo)
		file := filepath.Join(t.TempDir(), "key.pub")
		must.Succeed(t, p.Write(file))
		return trustIn(t, "key: '%s', roots: '%s'", file, roots)
	}
	for name, c := range map[string]struct {
		trust Trust
		data  []byte
		says  string // "" if it counts
	}{
		"a stamp before the end":             {trust(k, 10, roots), early, ""},
		"a stamp on the last day":            {trust(k, 30, roots), early, ""},
		"a key that has not expired":         {trust(k, 0, roots), plain, ""},
		"a stamp that nobody needs":          {trust(k, 0, ""), foreign, ""},
		"no stamp":                           {trust(k, 10, roots), plain, "it has no time stamp"},
		"a stamp after the end":              {trust(k, 10, roots), late, "signature time outside of public key validity window"},
		"a stamp of an unknown authority":    {trust(k, 10, roots), foreign, "no time stamp proves an earlier signature"},
		"no authority accepted":              {trust(k, 10, ""), early, "no time stamp proves an earlier signature"},
		"the stamp of another signature":     {trust(k, 10, roots), with(t, "timestampVerificationData", plain, early), "no time stamp proves an earlier signature"},
		"an early stamp of another key":      {trust(newTestKey(t, time.Time{}), 10, roots), early, "untrusted key signed it"},
		"a wrong signature with an old time": {trust(k, 10, roots), []byte(strings.Replace(string(early), `"sig":"`, `"sig":"AAAA`, 1)), "the signature is invalid"},
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

// A service that does not answer, and an address that is none, is named.
func TestServicesFail(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	s, k := newSigstore(t), newTestKey(t, time.Time{})
	stamped, err1 := k.Stamped(gone.URL + "/?token=x")
	logged, err2 := s.key(t, false).Logged(gone.URL)
	must.Succeed(t, err1, err2)
	for says, k := range map[string]Key{"404": stamped, "signing without a key: ": logged} {
		if _, err := Sign(k, []byte(statement)); err == nil || !strings.Contains(err.Error(), says) || diag.CodeOf(err) != diag.Fetch || strings.Contains(err.Error(), "token=x") {
			t.Errorf("%v", err)
		}
	}
	for _, address := range []string{"tsa.example.com", "ftp://tsa.example.com", "https://", "%"} {
		_, err1 := k.Stamped(address)
		_, err2 := k.Logged(address)
		check.That(t, diag.CodeOf(err1) == diag.Usage && diag.CodeOf(err2) == diag.Usage, "%s: %v, %v", address, err1, err2)
	}
	for _, address := range []string{"fulcio", "http://fulcio.example.com", "http://10.0.0.1:80", "http://localhost.example.com", "ftp://127.0.0.1", "https:///x"} {
		_, err := Keyless(address, tokenOf)
		check.That(t, diag.CodeOf(err) == diag.Usage, "%s: %v", address, err)
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
	file := filepath.Join(t.TempDir(), "token")
	must.Succeed(t, os.WriteFile(file, []byte("of-file\n"), 0o600))
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
