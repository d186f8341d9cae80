package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// refresh.yml updates the locks of recipes and proposes them, here and in the directory of
// a site. It gives osv-scanner the Python packages of the locks. Here it also records the
// cells that it built. The test replaces the programs that need a network: lock adds a line
// to the lock, run makes a cell, and the others record their arguments.
func TestRefresh(t *testing.T) {
	for _, site := range []string{".", "ours"} {
		t.Run(site, func(t *testing.T) {
			t.Parallel()
			refresh(t, site)
		})
	}
}

func refresh(t *testing.T, site string) {
	workflow := must.Get(os.ReadFile(filepath.Join(repositoryRoot, ".github", "workflows", "refresh.yml")))(t)
	tools, temp := t.TempDir(), t.TempDir()
	asked := filepath.Join(temp, "asked")
	for name, text := range map[string]string{
		"git":         `echo "git $*" >> ` + asked + `; [ "$1" != diff ]`,
		"gh":          `echo "gh $*" >> ` + asked,
		"osv-scanner": `echo "osv-scanner $*" >> ` + asked + `; echo GHSA-1; exit 1`,
		"make":        `echo "horovod-0.28.1, stale: builder run"`,
		"builder": fmt.Sprintf(`case $1 in
lock) echo >> "$SITE/recipes/$2.lock.json" ;;
run) mkdir -p "out/$2-1/a.whl.attestations" ;;
verify) echo "$*" >> "$4" ;;
*) exec %s/builder "$@" ;;
esac`, underTest()),
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755))
	}
	var checkout string
	for _, step := range []string{"move the pins", "list known weaknesses", "build the covering cells", "propose"} {
		if step == "build the covering cells" && site != "." {
			continue
		}
		checkout = t.TempDir() // each is a separate job
		for _, file := range []string{"recipes/horovod.yaml", "recipes/horovod.lock.json", "recipes/openrlhf.yaml", "recipes/openrlhf.lock.json"} {
			data, err := os.ReadFile(filepath.Join(repositoryRoot, file))
			to := filepath.Join(checkout, site, file)
			must.Succeed(t, err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644))
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", blockOf(t, string(workflow), step))
		cmd.Dir = checkout
		cmd.Env = append(readerEnv(temp, tools+":/usr/bin:/bin"), "RUNNER_TEMP="+temp, "BASE=main", "SITE="+site, "GITHUB_STEP_SUMMARY="+filepath.Join(temp, "summary"))
		out, err := cmd.CombinedOutput()
		must.Hold(t, err == nil, "%s: %v\n%s", step, err, out)
	}
	for _, lock := range []string{"recipes/horovod.lock.json", "recipes/openrlhf.lock.json"} {
		before, err1 := os.ReadFile(filepath.Join(repositoryRoot, lock))
		after, err2 := os.ReadFile(filepath.Join(checkout, site, lock))
		check.That(t, err1 == nil && err2 == nil && string(after) == string(before)+"\n", "%s is not proposed: %v, %v", lock, err1, err2)
	}
	record, err := os.ReadFile(filepath.Join(checkout, "recipes", "proven.json"))
	want := "verify out/openrlhf-1 --record recipes/proven.json\nverify out/ray-1 --record recipes/proven.json\n"
	check.That(t, (err == nil && string(record) == want) == (site == "."), "the record is %q, %v", record, err)
	body := must.Get(os.ReadFile(filepath.Join(temp, "body.md")))(t)
	check.Same(t, "list of stale records", site == ".", strings.HasSuffix(string(body), "~~~\nhorovod-0.28.1, stale: builder run\n~~~\n"))
	for file, want := range map[string]string{
		filepath.Join(temp, "summary"): "#### openrlhf\n",
		filepath.Join(temp, "body.md"): "#### known weaknesses\n~~~\nGHSA-1\n~~~\n",
		asked:                          "commit -m Move the pins -- " + site + "\n",
		filepath.Join(temp, "locks", "horovod", "requirements.txt"):  "\nhorovod==0.28.1\n",
		filepath.Join(temp, "locks", "openrlhf", "requirements.txt"): "==",
	} {
		text, err := os.ReadFile(file)
		check.That(t, err == nil && strings.Contains(string(text), want), "%s lacks %q, %v:\n%s", file, want, err, text)
	}
}

// blockOf returns the block of the named step in a workflow.
func blockOf(t *testing.T, workflow, name string) string {
	t.Helper()
	_, step, ok := strings.Cut(workflow, "- name: "+name+"\n")
	_, block, found := strings.Cut(step, "        run: |\n")
	must.Hold(t, ok && found, "there is no step %q", name)
	var lines []string
	for line := range strings.Lines(block) {
		text, inside := strings.CutPrefix(line, "          ")
		if !inside && strings.TrimSpace(line) != "" {
			break
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "")
}
