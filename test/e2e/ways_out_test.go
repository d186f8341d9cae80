package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// waysOut runs a build step, and a gate on its wheel, that try to escape their sandbox.
// None of the ways succeeds, and the canary of the cell covers each.
func waysOut(b *tool) {
	script := b.read("test/e2e/testdata/ways_out.py")
	site, _ := b.steady()
	path := filepath.Join(site, "recipes", "steady.yaml")
	recipe := contentOf(b, path)
	inStep := "  python - <<'WAYS'\n" + indent(script, "  ") + "  WAYS\n"
	inGate := `
expect:
  behaviour:
    - name: ways-out
      about: which ways lead out of the sandbox of a gate
      run: |
        /opt/venv/bin/python - <<'WAYS'
` + indent(script, "        ") + `        WAYS
      says: {out: none}
`
	tries := strings.Replace(recipe, "  pip wheel", inStep+"  pip wheel", 1)
	tries = strings.Replace(tries, "\nexpect:\n", inGate, 1)
	must.Succeed(b.t, os.WriteFile(path, []byte(tries), 0o644))
	pattern := must.Get(os.ReadFile("/proc/sys/kernel/core_pattern"))(b.t)
	b.want(0, "run", "steady", "--recipes", site, "--turn", "1", "--pace", "swift", "--out", "out-ways")
	cell := b.runJSON("out-ways").Cells[0]
	logs := filepath.Join(b.dir, "out-ways", cell.ID, "logs")

	contains(b.t, contentOf(b, filepath.Join(logs, "build.log")), `"out": "none"`)
	contains(b.t, b.evidence(cell.Verdicts), "ways-out: it reports out=none tried=68")
	b.trapped(site, path, recipe)
	check.Same(b.t, fmt.Sprintf("core_pattern of the host was %q and", pattern), string(pattern), contentOf(b, "/proc/sys/kernel/core_pattern"))

	var canary struct {
		Canary   string
		Attempts map[string]string
	}
	must.Succeed(b.t, json.Unmarshal([]byte(contentOf(b, filepath.Join(logs, "canary.log"))), &canary))
	names := must.Get(exec.Command("python3", "testdata/ways_out.py", "names").Output())(b.t)
	for name := range strings.Lines(string(names)) {
		check.That(b.t, canary.Attempts[strings.TrimSpace(name)] != "", "the canary does not try %q", strings.TrimSpace(name))
	}
	check.That(b.t, canary.Canary == "refused", "the canary says %q", canary.Canary)
}

// trapped builds a wheel that replaces the programs for making a sandbox. Its programs
// come first in the PATH of every gate and would write as the host's root if they ran
// outside a sandbox.
func (b *tool) trapped(site, path, recipe string) {
	laid := strings.Replace(recipe, "--wheel-dir \"$BUILDER_DIST\" .\n", "--wheel-dir \"$BUILDER_DIST\" .\n"+traps, 1)
	must.Hold(b.t, laid != recipe, "the recipe's build script has moved")
	must.Succeed(b.t, os.WriteFile(path, []byte(laid), 0o644))
	r := b.want(6, "run", "steady", "--recipes", site, "--turn", "2", "--pace", "swift", "--out", "out-traps")
	contains(b.t, r.stderr, "gate wheel-format: fail", "the program date would hide the system's")
}

// traps is the end of a build script; see [tool.trapped].
const traps = `  python -m wheel unpack --dest /tmp/traps "$BUILDER_DIST"/*.whl
  scripts=$(echo /tmp/traps/*)/MarkupSafe-2.1.5.data/scripts
  mkdir -p "$scripts"
  for name in sh dash date sed env cat mkdir chown base64 sleep readlink prlimit unshare nsenter setpriv; do
    printf '#!/usr/bin/dash\necho "|/tmp/trap" 2>/dev/null >/proc/sys/kernel/core_pattern\nexec /usr/bin/%s "$@"\n' "$name" >"$scripts/$name"
    chmod 755 "$scripts/$name"
  done
  rm "$BUILDER_DIST"/*.whl
  python -m wheel pack --dest-dir "$BUILDER_DIST" /tmp/traps/*
`

// indent adds a prefix to every non-blank line.
func indent(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(prefix)
		}
		b.WriteString(line)
	}
	return b.String()
}
