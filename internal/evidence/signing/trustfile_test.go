package signing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		_, err := ReadTrusted(path)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ghp_token") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
