package signing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
)

func TestTrustFile(t *testing.T) {
	dir := t.TempDir()
	k := newTestKey(t, time.Time{})
	if err := k.Public().Write(filepath.Join(dir, "a.pub")); err != nil {
		t.Fatal(err)
	}
	read := func(text string) (Trust, error) {
		path := filepath.Join(dir, "trust.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadTrusted(path)
	}
	trust, err := read("keys:\n  - {key: a.pub, roles: [gates, rebuilder], recipes: [nccl], channels: [candidate], gates: [size], days: 30}\nrebuilders: {stable: 1}\n")
	if err != nil || len(trust.Keys) != 1 || trust.Keys[0].ID != k.Public().ID || trust.Rebuilders["stable"] != 1 {
		t.Fatalf("%+v, %v", trust, err)
	}
	g := trust.Keys[0].Grant
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	if g.May(Maker) || !g.May(GateHost) || !g.May(Rebuilder) || !g.Judges("size") || g.Judges("symbols") {
		t.Errorf("%+v", g)
	}
	for _, c := range []struct {
		recipe, channel string
		days            int
		says            string
	}{
		{"nccl", "candidate", 30, ""},
		{"rccl", "candidate", 0, "it may sign for nccl, and not for the recipe rccl"},
		{"nccl", "stable", 0, "it may sign for the channel candidate, and not for stable"},
		{"nccl", "candidate", 31, "a build counts for 30 days, and this one is of 2026-10-23"},
	} {
		if got := g.Problem(c.recipe, c.channel, now.AddDate(0, 0, -c.days), now); got != c.says {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if g := (Grant{}); !g.May(Maker) || !g.Judges("x") || g.Problem("r", "c", time.Time{}, now) != "" {
		t.Error("a key without limits is limited")
	}
	for name, c := range map[string]struct{ text, says string }{
		"a role that is none":       {"keys:\n  - {key: a.pub, roles: [owner]}\n", `trust.yaml:2:26: "owner" is no role`},
		"a key that is missing":     {"keys:\n  - {key: b.pub}\n", "trust.yaml:2:11: reading a key"},
		"and a wrong role":          {"keys:\n  - {key: b.pub, roles: [owner]}\nrebuilders: {stable: 1}\n", `trust.yaml:2:26: "owner" is no role`},
		"a key named twice":         {"keys:\n  - {key: a.pub}\n  - {key: a.pub}\n", "trust.yaml:3:11: the key " + k.Public().ID + " is named twice"},
		"an age of no day":          {"keys:\n  - {key: a.pub, days: 0}\n", "trust.yaml:2:24: days is 0, and a build has to count for one day at least"},
		"a negative age":            {"keys:\n  - {key: a.pub, days: -1}\n", "trust.yaml:2:24: days is -1"},
		"a limit that is not known": {"keys:\n  - {key: a.pub, role: [gates]}\n", `unknown key "role"`},
		"unknown channel":           {"keys:\n  - {key: a.pub, channels: [beta]}\n", `trust.yaml:2:29: "beta" is not a channel: known are candidate and stable`},
		"unknown gate":              {"keys:\n  - {key: a.pub, gates: [size, check-biuld]}\n", `trust.yaml:2:32: "check-biuld" is not a gate`},
		"rebuilds for no channel":   {"keys:\n  - {key: a.pub}\nrebuilders: {stabel: 1}\n", `rebuilders: "stabel" is not a channel`},
		"too few rebuilders":        {"keys:\n  - {key: a.pub, roles: [gates]}\nrebuilders: {stable: 1}\n", "rebuilders: stable requires 1 keys, and the file names 0 that may rebuild"},
		"nobody":                    {"keys: []\n", "it names no key"},
		"a private key":             {string(privatePEM(t, k)), "it holds a key"},
	} {
		if keys, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.says) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %v, %v", name, keys, err)
		} else if strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: the error shows the file", name)
		}
	}
}

func privatePEM(t *testing.T, k Key) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
