package pipelines

import (
	"os/exec"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The script must set the build step's environment and nothing else, even for values
// with quotes and $.
func TestChrootScript(t *testing.T) {
	script := chrootScript("Says what it sees.", map[string]string{"A": "it's $HOME", "B": ""}, "chroot . sh -euc 'env'")
	// The test drops the parts that need root or the file system and runs the rest
	// unchanged.
	head, command, ok := strings.Cut(script, "' sh \\\n")
	must.Hold(t, ok && strings.Contains(head, "exec unshare --mount --net") && strings.Contains(head, `exec env -i "$@"`), "%v", script)
	command = "exec env -i " + strings.Replace(strings.TrimSpace(command), "chroot . ", "/bin/", 1)
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	must.Hold(t, err == nil, "%v: %s", err, out)
	got := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		got[strings.TrimSpace(line)] = true
	}
	check.That(t, got["A=it's $HOME"] && got["B="] && len(got) <= 5, "got %q", out)
}

// Invalid variable names must not run as commands.
func TestAScriptQuotesTheNamesOfVariables(t *testing.T) {
	script := chrootScript("Says what it sees.", map[string]string{"A;touch x;B": "v", "C$(touch x)": "v"}, "true")
	for _, want := range []string{"  'A;touch x;B'='v' \\\n", "  'C$(touch x)'='v' \\\n"} {
		check.That(t, strings.Contains(script, want), "%q is not in %s", want, script)
	}
}
