package home_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A home belongs to its user, who alone can read, write and lock its files.
func TestHomeIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		mode    os.FileMode // 0: there is no home
		content bool
		owner   int
		fault   string
		mended  bool
	}{
		"none":                   {},
		"private":                {mode: 0o700, content: true},
		"others can read":        {mode: 0o755, content: true, mended: true},
		"a group can read":       {mode: 0o750, content: true, mended: true},
		"all can write, empty":   {mode: 0o777, mended: true},
		"all can write":          {mode: 0o777, content: true, fault: "other users can write to"},
		"a group can write":      {mode: 0o775, content: true, fault: "other users can write to"},
		"a home of another user": {mode: 0o700, content: true, owner: 65533, fault: "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "home")
			t.Setenv("BUILDER_HOME", dir)
			if c.mode != 0 {
				makeHome(t, dir, c.mode, c.content, c.owner)
			}
			var said string
			got, err := home.Closed(func(format string, args ...any) { said += fmt.Sprintf(format, args...) })
			if c.fault != "" {
				check.That(t, diag.CodeOf(err) == diag.Usage && strings.Contains(err.Error(), c.fault) && strings.Contains(diag.All(err)[0].Hint, "BUILDER_HOME=DIR"),
					"got %v", err)
				return
			}
			check.That(t, err == nil && got == dir && c.mended == strings.Contains(said, "closed "+dir),
				"got %s, %v; it said %q", got, err, said)
			if info, err := os.Stat(dir); err == nil && info.Mode().Perm() != 0o700 {
				t.Errorf("its mode is %v", info.Mode())
			}
		})
	}
}

func makeHome(t *testing.T, home string, mode os.FileMode, content bool, owner int) {
	t.Helper()
	if owner != 0 && os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	err := os.Mkdir(home, 0o700)
	if err == nil && content {
		err = os.WriteFile(filepath.Join(home, "file"), nil, 0o600)
	}
	if err == nil && owner != 0 {
		err = os.Chown(home, owner, owner)
	}
	if err == nil {
		err = os.Chmod(home, mode)
	}
	must.Succeed(t, err)
}

// The error names the directory of the user, not a probe in it.
func TestFileCannotBeWritten(t *testing.T) {
	err := home.AbsentFile("/proc/engine.tar")
	check.That(t, diag.CodeOf(err) == diag.Usage && strings.HasPrefix(err.Error(), "--to: cannot write to /proc: "), "%v", err)
	check.That(t, !strings.Contains(err.Error(), ".builder-"), "%v", err)
}
