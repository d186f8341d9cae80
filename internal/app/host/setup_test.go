package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Docker is queried once, at the first call.
func TestDaemonIsAskedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		found  bool
	}{"runs": {`echo '{"ID":"number"}'`, true}, "does not run": {"exit 1", false}} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			program(t, filepath.Join(bin, "docker"), `echo "$1" >>`+bin+"/asked\n"+c.script)
			t.Setenv("PATH", bin) // hides a Podman of this host
			var d Daemon
			asked := 0
			for range 3 {
				if _, found := d.Find(t.Context()); found != c.found {
					t.Errorf("found: %v", found)
				}
				lines, err := os.ReadFile(filepath.Join(bin, "asked"))
				if n := strings.Count(string(lines), "\n"); err != nil || asked > 0 && n != asked {
					t.Errorf("asked %d times, then %d times, %v", asked, n, err)
				} else {
					asked = n
				}
			}
		})
	}
}
