package config_test

import (
	"testing"

	"builder/cmd/builder/config"
	"builder/internal/base/diag"
	"builder/test/kit/check"
)

// Any content parses or causes usage errors, and no parsed value is a secret.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"jobs: 2\n", "trust: [~/a, \"\"]\n", "from: [\"file:\"]\n", "home: \"\"\n", "- a\n", "\xff",
	} {
		f.Add([]byte(text))
	}
	host := config.Host{Dir: "/work", Lookup: environment{}.lookup}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := host.Of(data)
		check.That(t, err == nil || diag.CodeOf(err) == diag.Usage, "%q: %v", data, err)
		for _, s := range c.Settings {
			check.That(t, s.Pos.Line != 0, "%q: %s has no place", data, s.Key)
		}
	})
}
