package pipelines

import (
	"encoding/json"
	"errors"
	"os/exec"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The canary runs as a process of this host, outside of the sandbox. It must report
// everything it could reach.
func TestCanaryOutsideOfTheSandbox(t *testing.T) {
	out, err := exec.Command("python3", "-I", "-c", script("canary.py")).Output()
	var exit *exec.ExitError
	must.Hold(t, errors.As(err, &exit) && exit.ExitCode() == 3, "it ended with %v, want exit 3\n%s", err, out)
	var says struct {
		Canary   string
		Reached  []string
		Attempts map[string]string
	}
	err = json.Unmarshal(out, &says)
	must.Hold(t, err == nil, "%v\n%s", err, out)
	check.That(t, says.Canary == "escaped", "it says %q", says.Canary)
	reached := map[string]bool{}
	for _, name := range says.Reached {
		reached[name] = true
	}
	// Every host shows these, to any user and with any kernel settings.
	for _, name := range []string{"/sys", "devices", "root of the host", "boot_id", "uptime", "load", "kernel in /proc/version", "processor in /proc/cpuinfo",
		"netlink beside interfaces", "interrupts of devices", "buses of the host", "file systems of the host", "kinds of file systems", "device drivers", "small device drivers",
		"control groups of the host", "free pages", "other files of /proc", "directory entries of the host", "inodes of the host", "open files of the host", "faults of the kernel"} {
		if !reached[name] {
			t.Errorf("it does not report %q, but %q", name, says.Attempts[name])
		}
	}
}
