package app

import (
	"os/exec"
	"strings"
	"testing"
)

// The environment of the script is the build step's and nothing else, whatever
// the values hold.
func TestChrootScript(t *testing.T) {
	script := chrootScript("Says what it sees.", map[string]string{"A": "it's $HOME", "B": ""}, "chroot . sh -euc 'env'")
	// What needs root and a file system is left out; the rest is run as it is.
	head, command, ok := strings.Cut(script, "' sh \\\n")
	if !ok || !strings.Contains(head, "exec unshare --mount --net") || !strings.Contains(head, `exec env -i "$@"`) {
		t.Fatal(script)
	}
	command = "exec env -i " + strings.Replace(strings.TrimSpace(command), "chroot . ", "/bin/", 1)
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		got[strings.TrimSpace(line)] = true
	}
	if !got["A=it's $HOME"] || !got["B="] || len(got) > 5 {
		t.Errorf("got %q", out)
	}
}

// A name that is none is no command either.
func TestAScriptQuotesTheNamesOfVariables(t *testing.T) {
	script := chrootScript("Says what it sees.", map[string]string{"A;touch x;B": "v", "C$(touch x)": "v"}, "true")
	for _, want := range []string{"  'A;touch x;B'='v' \\\n", "  'C$(touch x)'='v' \\\n"} {
		if !strings.Contains(script, want) {
			t.Errorf("%q is not in %s", want, script)
		}
	}
}
