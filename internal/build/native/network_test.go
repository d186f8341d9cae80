package native

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// TestNetworkPlugin runs the plugin as the engine does. The specification of CNI asks for
// a result with the version of the configuration, for no output after DEL, and for
// failure without a command.
func TestNetworkPlugin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loopback")
	must.Succeed(t, os.WriteFile(path, []byte(networkPlugin), 0o755))
	run := func(env ...string) (string, error) {
		cmd := exec.Command(path)
		cmd.Env = env
		out, err := cmd.Output()
		return string(out), err
	}
	var list struct{ CNIVersion string }
	var result struct {
		CNIVersion string
		Interfaces []struct{ Name string }
	}
	must.Succeed(t, json.Unmarshal([]byte(networkConfig), &list))
	out, err := run("CNI_COMMAND=ADD")
	if json.Unmarshal([]byte(out), &result); err != nil || result.CNIVersion != list.CNIVersion || len(result.Interfaces) != 1 {
		t.Fatalf("ADD: %q, %v", out, err)
	}
	name := result.Interfaces[0].Name
	check.That(t, strings.HasPrefix(name, "veth") && exists(filepath.Join("/sys/class/net", name, "statistics/rx_bytes")),
		"the engine finds no counters of %q", name)
	out, err = run("CNI_COMMAND=DEL")
	check.That(t, err == nil && out == "", "DEL: %q, %v", out, err)
	out, err = run()
	check.That(t, err != nil, "without a command: %q", out)
}
