package signing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestTrustFile(t *testing.T) {
	dir := t.TempDir()
	k := newTestKey(t, time.Time{})
	secret := filepath.Join(dir, "secret")
	must.Succeed(t, k.Write(secret))
	private, err := os.ReadFile(secret)
	must.Succeed(t, err)
	for name, text := range map[string]string{"a.pub": string(k.Public().PEM()), "none.json": "{}", "token": "ghp_token"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	read := func(text string) (Trust, error) {
		path := filepath.Join(dir, "trust.yaml")
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		return ReadTrusted(path)
	}
	trust, err := read("keys:\n  - {key: a.pub, roles: [gates, rebuilder]}\nrebuilders: {stable: 1}\n")
	if err != nil || len(trust.Keys) != 1 || trust.Keys[0].ID != k.Public().ID || trust.Rebuilders["stable"] != 1 || filepath.Base(trust.Keys[0].File) != "trust.yaml" {
		t.Fatalf("%+v, %v", trust, err)
	}
	p := trust.Keys[0]
	check.That(t, !p.May(Maker) && p.May(GateHost) && p.May(Rebuilder) && k.Public().May(Maker), "%+v", p)
	if trust, err := read("keys:\n  - {key: a.pub}\n"); err != nil || slices.ContainsFunc(roles, func(r Role) bool { return !trust.Keys[0].May(r) }) {
		t.Errorf("a key without roles may not sign all: %+v, %v", trust, err)
	}
	for name, c := range map[string]struct{ text, says string }{
		"a role that is none":       {"keys:\n  - {key: a.pub, roles: [owner]}\n", `trust.yaml:2:26: "owner" is no role`},
		"a key that is missing":     {"keys:\n  - {key: b.pub}\n", "trust.yaml:2:5: reading a key"},
		"and a wrong role":          {"keys:\n  - {key: b.pub, roles: [owner]}\nrebuilders: {stable: 1}\n", `trust.yaml:2:26: "owner" is no role`},
		"a key named twice":         {"keys:\n  - {key: a.pub}\n  - {key: a.pub}\n", "trust.yaml:3:5: the key " + k.Public().ID + " is named twice"},
		"a limit that is not known": {"keys:\n  - {key: a.pub, recipes: [nccl]}\n", `unknown key "recipes"`},
		"rebuilds for no channel":   {"keys:\n  - {key: a.pub}\nrebuilders: {stabel: 1}\n", `rebuilders: "stabel" is not a channel`},
		"too few rebuilders":        {"keys:\n  - {key: a.pub, roles: [gates]}\nrebuilders: {stable: 1}\n", "rebuilders: stable requires 1 keys, and the file names 0 that may rebuild"},
		"nobody":                    {"keys: []\n", "it names no key"},
		"a private key":             {string(private), "it holds a key"},
		"no subject":                {"keys:\n  - {issuer: https://i, roots: none.json}\n", "name a key, or an issuer, a subject and roots"},
		"no roots":                  {"keys:\n  - {issuer: https://i, subject: s}\n", "name a key, or an issuer, a subject and roots"},
		"nothing":                   {"keys:\n  - {roles: [gates]}\n", "name a key, or an issuer, a subject and roots"},
		"key and subject":           {"keys:\n  - {key: a.pub, subject: s}\n", "name a key, or an issuer, a subject and roots"},
		"roots that are none":       {"keys:\n  - {key: a.pub, roots: none.json}\n", "roots: expected a trusted_root.json of Sigstore: none.json: "},
		"roots in another format":   {"keys:\n  - {key: a.pub, roots: token}\n", "token: it is no JSON object"},
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
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ghp_token") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
