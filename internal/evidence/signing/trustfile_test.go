package signing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestTrustFile(t *testing.T) {
	dir := t.TempDir()
	k := newTestKey(t)
	secret := filepath.Join(dir, "secret")
	must.Succeed(t, k.Write(secret))
	private := must.Get(os.ReadFile(secret))(t)
	for name, text := range map[string]string{"a.pub": string(k.Public().PEM()), "none.json": "{}", "token": "ghp_token"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	read := func(text string) ([]PublicKey, error) {
		path := filepath.Join(dir, "trust.yaml")
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		return ReadTrusted(path)
	}
	keys, err := read("keys:\n  - {key: a.pub}\n")
	check.That(t, err == nil && len(keys) == 1 && keys[0].ID == k.Public().ID, "%+v, %v", keys, err)
	for name, c := range map[string]struct{ text, says string }{
		"a key that is missing":     {"keys:\n  - {key: b.pub}\n", "trust.yaml:2:5: reading a key"},
		"two faults":                {"keys:\n  - {key: b.pub}\n  - {key: c.pub}\n", "trust.yaml:3:5: reading a key"},
		"a key named twice":         {"keys:\n  - {key: a.pub}\n  - {key: a.pub}\n", "trust.yaml:3:5: the key " + k.Public().ID + " is named twice"},
		"a limit that is not known": {"keys:\n  - {key: a.pub, recipes: [nccl]}\n", `unknown key "recipes"`},
		"a role":                    {"keys:\n  - {key: a.pub, roles: [gates]}\n", `unknown key "roles"`},
		"a number of rebuilders":    {"keys:\n  - {key: a.pub}\nrebuilders: {stable: 1}\n", `unknown key "rebuilders"`},
		"nobody":                    {"keys: []\n", "it names no key"},
		"a private key":             {string(private), "it holds a key"},
		"no subject":                {"keys:\n  - {issuer: https://i, roots: none.json}\n", "name a key, or an issuer, a subject and roots"},
		"no roots":                  {"keys:\n  - {issuer: https://i, subject: s}\n", "name a key, or an issuer, a subject and roots"},
		"nothing":                   {"keys:\n  - {}\n", "name a key, or an issuer, a subject and roots"},
		"key and roots":             {"keys:\n  - {key: a.pub, roots: none.json}\n", "name a key, or an issuer, a subject and roots"},
		"key and subject":           {"keys:\n  - {key: a.pub, subject: s}\n", "name a key, or an issuer, a subject and roots"},
		"roots that are none":       {"keys:\n  - {issuer: https://i, subject: s, roots: none.json}\n", "roots: expected a trusted_root.json of Sigstore: none.json: "},
		"roots in another format":   {"keys:\n  - {issuer: https://i, subject: s, roots: token}\n", "token: it is no JSON object"},
	} {
		if keys, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.says) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %v, %v", name, keys, err)
		} else if strings.Contains(err.Error(), "PRIVATE") || strings.Contains(err.Error(), "ghp_token") {
			t.Errorf("%s: the error shows the file", name)
		}
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
		must.Succeed(t, err)
	}
	t.Chdir(work)
	for path, want := range map[string]string{
		"trust.yaml": "points outside", filepath.Join(work, "trust.yaml"): "points outside",
		filepath.Join(elsewhere, "trust.yaml"): "must be keys with values, not a single value",
	} {
		_, err := ReadTrusted(path)
		check.That(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "ghp_token"), "%s: %v", path, err)
	}
}
