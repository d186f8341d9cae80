package signing

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
)

// A signature of a trust file covers all files that it names, under their names.
func TestSignedTrust(t *testing.T) {
	root, other, a := newTestKey(t, time.Time{}), newTestKey(t, time.Time{}), newTSA(t)
	chain, err := os.ReadFile(a.chain)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	expired := root.Public()
	expired.NotAfter = now.AddDate(0, 0, -2)
	replace := func(name string, data []byte) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), data, 0o600) }
	}
	signature := "trust.yaml.sigstore.json"
	for name, c := range map[string]struct {
		do   func(dir string) error
		by   PublicKey
		says string // "" if it counts
	}{
		"as signed":              {func(string) error { return nil }, root.Public(), ""},
		"another key":            {func(string) error { return nil }, other.Public(), "an untrusted key signed it: " + root.Public().ID},
		"an expired key":         {func(string) error { return nil }, expired, "the last day of its key was"},
		"no signature":           {func(dir string) error { return os.Remove(filepath.Join(dir, signature)) }, root.Public(), "no such file"},
		"a damaged signature":    {replace(signature, []byte("{}")), root.Public(), "not a Sigstore bundle"},
		"a signature of others":  {replace(signature, signed(t, root, statement)), root.Public(), "the signature is about a x"},
		"limits removed":         {replace("trust.yaml", []byte("keys: [{key: keys/a.pub}]\n")), root.Public(), "trust.yaml: key " + root.Public().ID + ", the trust-root, did not sign these bytes under this name"},
		"a key exchanged":        {replace("keys/a.pub", other.Public().PEM()), root.Public(), "keys/a.pub: key " + root.Public().ID + ", the trust-root, did not sign"},
		"an authority exchanged": {replace("tsa.pem", append(chain, '\n')), root.Public(), "tsa.pem: key "},
		"another trust file": {func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "keys/a.pub"), filepath.Join(dir, "a.pub")), replace("trust.yaml", []byte("keys: [{key: a.pub}]\n"))(dir))
		}, root.Public(), "trust.yaml: key "},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "trust.yaml")
		if err := os.Mkdir(filepath.Join(dir, "keys"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(replace("keys/a.pub", newTestKey(t, time.Time{}).Public().PEM())(dir), replace("tsa.pem", chain)(dir),
			replace("trust.yaml", []byte("keys:\n  - {key: keys/a.pub, roles: [gates]}\ntimestamps: [tsa.pem]\n"))(dir)); err != nil {
			t.Fatal(err)
		}
		if written, err := SignTrust(path, root); err != nil || written != filepath.Join(dir, signature) {
			t.Fatal(written, err)
		}
		if err := c.do(dir); err != nil {
			t.Fatal(err)
		}
		trust, err := ReadTrusted(path, &TrustRoot{c.by, Memory(t.TempDir())}, now)
		switch {
		case c.says == "" && (err != nil || len(trust.Keys) != 1 || len(trust.Authorities) != 1):
			t.Errorf("%s: %+v, %v", name, trust, err)
		case c.says != "" && (diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// An older trust file does not count once a host has seen a newer one: the newer one may
// have taken a key back.
func TestReplayedTrust(t *testing.T) {
	root, dir := newTestKey(t, time.Time{}), t.TempDir()
	here := &TrustRoot{root.Public(), Memory(t.TempDir())}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func(name string) (signature []byte) {
		t.Helper()
		write(name, []byte("keys: [{key: a.pub}]\n"))
		path, err := SignTrust(filepath.Join(dir, name), root)
		if err == nil {
			signature, err = os.ReadFile(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	read := func(name string) error {
		_, err := ReadTrusted(filepath.Join(dir, name), here, time.Now())
		return err
	}
	a, b := newTestKey(t, time.Time{}).Public(), newTestKey(t, time.Time{}).Public()
	write("a.pub", a.PEM())
	older := sign("trust.yaml")
	other := sign("other.yaml")
	for range 2 {
		if err := read("trust.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	write("a.pub", b.PEM())
	sign("trust.yaml")
	if err := read("trust.yaml"); err != nil {
		t.Fatal(err)
	}
	write("a.pub", a.PEM())
	write("trust.yaml.sigstore.json", older)
	if err := read("trust.yaml"); diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), "trust.yaml: it was signed on ") || !strings.Contains(err.Error(), "this host has seen a newer one") {
		t.Errorf("%v", err)
	}
	write("other.yaml.sigstore.json", other)
	if err := read("other.yaml"); err != nil {
		t.Errorf("another file: %v", err)
	}
	write("trust.yaml.sigstore.json", other)
	if err := read("trust.yaml"); err == nil || !strings.Contains(err.Error(), "did not sign these bytes under this name") {
		t.Errorf("the signature of another name: %v", err)
	}
	files, err := os.ReadDir(string(here.Memory))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(string(here.Memory), f.Name()), []byte("soon"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := read("other.yaml"); err == nil || !strings.Contains(err.Error(), ".trust: ") {
		t.Errorf("a damaged memory: %v", err)
	}
}

// A trust file of a checkout is no link to a file that only the user may read. One that
// the user keeps elsewhere may be a link.
func TestATrustFileOfACheckoutIsNoLink(t *testing.T) {
	work, elsewhere := t.TempDir(), t.TempDir()
	token := filepath.Join(elsewhere, "token")
	for _, err := range []error{
		os.WriteFile(token, []byte("ghp_token\n"), 0o600), os.Symlink(token, filepath.Join(work, "trust.yaml")), os.Symlink(token, filepath.Join(elsewhere, "trust.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(work)
	for path, want := range map[string]string{
		"trust.yaml": "points outside", filepath.Join(work, "trust.yaml"): "points outside",
		filepath.Join(elsewhere, "trust.yaml"): "must be keys with values, not a single value",
	} {
		_, err := ReadTrusted(path, nil, time.Time{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ghp_token") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
