package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"builder/internal/config"
	"builder/internal/diag"
)

// FuzzLoad: whatever stands in the file, it is a configuration or a fault of class
// usage, and no value of it is a secret.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"jobs: 2\naxes: {horovod: {rocm: \"6.1\"}}\n", "trust: [~/a, \"\"]\n", "from: [\"file:\"]\n", "home: \"\"\n", "- a\n", "\xff",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, config.Name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Host{Dir: dir, Lookup: environment{}.lookup})
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
