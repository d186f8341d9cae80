package e2e

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// stacked builds a wheelhouse of two built parts, three wheels of the index and one
// package of the platform. It installs without a network. A second run gives the same
// bytes without an engine.
func stacked(b *tool) {
	site, err := filepath.Abs("../../docs/examples/stack")
	must.Succeed(b.t, err)
	args := []string{"run", "stack/templates", "--recipes", site, "--out", "out-stack", "--locked"}
	b.want(0, args...)
	cells := b.runJSON("out-stack").Cells
	must.Hold(b.t, len(cells) == 3 && cells[2].ID == "stack/templates" && cells[2].Status == "pass" && len(cells[2].Verdicts) == 2,
		"got %+v", cells)
	contains(b.t, cells[2].Verdicts[0].Evidence, "python is 3.11 (MarkupSafe-2.1.5, jinja2-3.1.4)", "mpi has no value in 2 parts")
	contains(b.t, cells[2].Verdicts[1].Evidence, "6 wheels installed by digest without a network", "the platform provides click>=8.1.3 (flask needs it)")
	first := b.house("out-stack")
	b.want(0, "engine", "down")
	must.Succeed(b.t, os.RemoveAll(filepath.Join(b.dir, "out-stack")))
	b.want(0, append(args, "--offline")...)
	cell := b.runJSON("out-stack").Cells[0]
	check.That(b.t, cell.From == "store", "got %+v", cell)
	again := b.house("out-stack")
	check.That(b.t, len(first) == 8 && maps.Equal(first, again), "made %v, then %v", first, again)
	b.lacking(site)
}

// house returns the digests of a stack's files, by name.
func (b *tool) house(out string) map[string]string {
	b.t.Helper()
	sums := map[string]string{}
	for _, c := range b.runJSON(out).Cells {
		if c.ID != "stack/templates" {
			continue
		}
		for _, a := range c.Artifacts {
			data, err := os.ReadFile(filepath.Join(b.dir, a.Path))
			must.Succeed(b.t, err)
			sums[strings.TrimPrefix(a.Path, filepath.Join(out, c.ID)+"/")] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
	}
	return sums
}

// lacking declares a package of the platform that nothing requires. The gate refuses
// the stack, and there is no wheelhouse.
func (b *tool) lacking(site string) {
	b.t.Helper()
	bare := b.t.TempDir()
	must.Succeed(b.t, os.CopyFS(bare, os.DirFS(site)))
	file := filepath.Join(bare, "stacks", "templates.yaml")
	text, err := os.ReadFile(file)
	must.Succeed(b.t, err)
	swapped := strings.Replace(string(text), "project: click", "project: nothing-needs-this", 1)
	lock := filepath.Join(bare, "stacks", "templates.lock.json")
	must.Succeed(b.t, os.WriteFile(file, []byte(swapped), 0o644), os.Remove(lock))
	r := b.want(6, "run", "stack/templates", "--recipes", bare, "--out", "out-lacking")
	contains(b.t, r.stderr, "gate wheelhouse: fail: nothing-needs-this is declared as provided, and no wheel requires it")
	if _, err := os.Stat(filepath.Join(b.dir, "out-lacking", "stack", "templates", "wheelhouse")); !os.IsNotExist(err) {
		b.t.Errorf("a refused wheelhouse lies where good ones do: %v", err)
	}
}
