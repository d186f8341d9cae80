package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// lookedAt makes a build fail, opens a shell at the failure, and replays the build
// without the tool.
func lookedAt(b *tool) {
	site, _ := b.steady()
	path := filepath.Join(site, "recipes", "steady.yaml")
	broken := strings.Replace(contentOf(b, path), "  pip wheel", "  gcc -c nowhere.c\n  pip wheel", 1)
	must.Succeed(b.t, os.WriteFile(path, []byte(broken), 0o644))
	r := b.want(5, "run", "steady", "--recipes", site, "--turn", "1", "--pace", "swift", "--out", "out-broken")
	contains(b.t, r.stderr, "nowhere.c: No such file", "`builder debug shell steady-1-swift --out out-broken` opens a shell where it failed")

	shell := b.command(b.t.Context(), "debug", "shell", "steady-1", "--out", "out-broken")
	shell.Stdin = strings.NewReader("pwd; echo turn $TURN; gcc -c nowhere.c; ls /sys/class/net; exit 3\n")
	said, err := shell.CombinedOutput()
	check.That(b.t, err == nil, "%v\n%s", err, said)
	contains(b.t, string(said), "/build/src", "turn 1 of ", "nowhere.c: No such file")

	dir := filepath.Join(b.t.TempDir(), "sent")
	b.want(0, "debug", "shell", "steady", "--out", "out-broken", "--to", dir)
	said, err = exec.Command(filepath.Join(dir, "build")).CombinedOutput()
	check.That(b.t, err != nil && strings.Contains(string(said), "nowhere.c: No such file"), "the replay ended with %v\n%s", err, said)
	mounts := contentOf(b, "/proc/mounts")
	check.That(b.t, !strings.Contains(mounts, dir), "mounts are left:\n%s", mounts)
}

func contentOf(b *tool, path string) string {
	b.t.Helper()
	return string(must.Get(os.ReadFile(path))(b.t))
}
