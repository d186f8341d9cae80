package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"builder/cmd/builder/config"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A file found beside the work must not be a link out of its directory: an untrusted
// checkout could expose the user's key in an error message. The user's own file may be
// a link.
func TestALinkBesideTheWorkIsNotFollowed(t *testing.T) {
	dir, user, elsewhere := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "key")
	for _, err := range []error{
		os.WriteFile(elsewhere, []byte("offline: true\n"), 0o600), os.Symlink(elsewhere, filepath.Join(dir, config.Name)),
		os.Mkdir(filepath.Join(user, "builder"), 0o700), os.Symlink(elsewhere, filepath.Join(user, "builder", config.Name)),
	} {
		must.Succeed(t, err)
	}
	host := config.Host{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}
	_, err := config.Load(host)
	check.Fails(t, err, "points outside", "beside the work")
	host = config.Host{Dir: t.TempDir(), User: user, Lookup: host.Lookup}
	if c, err := config.Load(host); err != nil || len(c.Settings) != 1 {
		t.Errorf("the user's own: %v, %v", c.Settings, err)
	}
}
