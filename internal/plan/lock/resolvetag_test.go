package lock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A recipe may state the commit of a tag, because tags can be moved and a lock may not
// have every tag.
func TestResolveATagAndItsCommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "git %v: %v: %s", args, err, out)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n"), 0o600))
	git("add", "Makefile")
	git("commit", "-q", "-m", "one")
	git("tag", "v1")
	first := git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "two")
	second := git("rev-parse", "HEAD")
	resolve := func(commit string) (lock.File, error) {
		r := resolver(errors.New("uv is not asked"))
		r.Scratch = t.TempDir()
		r.Overrides = map[string][]string{"tool": {dir}}
		from := recipe.Origin{Kind: recipe.Git, Repository: "https://example.com/tool", Tag: "v1", Commit: commit}
		return r.Resolve(t.Context(), "tool", lock.Missing{Sources: []lock.SourceNeed{{Origin: from, Project: "tool", Version: "1"}}})
	}
	f, err := resolve(first)
	check.That(t, err == nil && len(f.Sources) == 1 && f.Sources[0].Commit == first && f.Sources[0].Tag == "v1", "%+v, %v", f.Sources, err)
	_, err = resolve(second)
	check.That(t, diag.CodeOf(err) == diag.Drift && strings.Contains(err.Error(), "the tag v1 of tool names commit "+first+", but the recipe has "+second),
		"a tag that leads elsewhere: %v", err)
}
