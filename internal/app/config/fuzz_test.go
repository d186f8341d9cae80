package config_test

import (
	"testing"

	"builder/internal/app/config"
	"builder/internal/base/diag"
)

// Any content parses or causes usage errors, and no parsed value is a secret.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"jobs: 2\naxes: {horovod: {rocm: \"6.1\"}}\n", "trust: [~/a, \"\"]\n", "from: [\"file:\"]\n", "home: \"\"\n", "- a\n", "\xff",
	} {
		f.Add([]byte(text))
	}
	host := config.Host{Dir: "/work", Lookup: environment{}.lookup}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := host.Of(data)
		if err != nil && diag.CodeOf(err) != diag.Usage {
			t.Errorf("%q: %v", data, err)
		}
		for _, s := range c.Settings {
			if s.Pos.Line == 0 {
				t.Errorf("%q: %s has no place", data, s.Key)
			}
		}
	})
}
