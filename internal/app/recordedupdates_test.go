package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"builder/internal/app"
	"builder/internal/app/catalogue"
	"builder/internal/plan/recipe"
)

// recordedUpstreams returns the files of testdata/upstreams.txtar, which says what they
// hold.
func recordedUpstreams(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := txtar.ParseFile("testdata/upstreams.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range all.Files {
		files[f.Name] = f.Data
	}
	return files
}

// fakeIndex is a uv that knows the recorded answers. It fails on another question, and
// the recipe's upstream then counts as not asked.
const fakeIndex = `#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --python-version ] && python=$2
  shift
done
question="$python $(cat requirements.in)"
answer=$(grep -F "$question	" ANSWERS | head -n 1 | cut -f 2)
case $answer in
"") echo "not recorded: $question" >&2; exit 2 ;;
-) echo "  × No solution found when resolving dependencies:" >&2; exit 1 ;;
esac
name=$(sed 's/[=>].*//' requirements.in)
cat > pylock.toml <<END
[[packages]]
name = "$name"
version = "${answer% *}"
wheels = [{ name = "$name-${answer% *}-py3-none-any.whl", url = "https://index.invalid/$name.whl", upload-time = ${answer#* }, size = 7, hashes = { sha256 = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb" } }]
END
`

// repository makes a repository with an empty commit for each line "TAG DATE".
func repository(t *testing.T, tags []byte) string {
	t.Helper()
	dir := t.TempDir()
	var stream bytes.Buffer
	for line := range strings.Lines(string(tags)) {
		tag, date, _ := strings.Cut(strings.TrimSpace(line), " ")
		made, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stream, "commit refs/tags/%s\ncommitter a <a@example.com> %d +0000\ndata 0\n\n", tag, made.Unix())
	}
	for _, args := range [][]string{{"init", "-q"}, {"fast-import", "--quiet"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = &stream
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestRecordedUpdates: with the axes of 2026-11-22, the answers of the upstreams lead to
// each newer value that the catalogue got by hand since, with cells. With today's axes
// they lead to none.
func TestRecordedUpdates(t *testing.T) {
	files := recordedUpstreams(t)
	var axes map[string]map[string][]string
	if err := json.Unmarshal(files["axes.json"], &axes); err != nil {
		t.Fatal(err)
	}
	cat, err := catalogue.Load("", catalogue.Taken{})
	if err != nil {
		t.Fatal(err)
	}
	var today, old []*recipe.Recipe
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		r, err := recipe.Find(cat.Recipes, name)
		if err != nil {
			t.Fatal(err)
		}
		before := *r
		before.Axes = slices.Clone(r.Axes)
		for i, a := range before.Axes {
			if values := axes[name][a.Name]; values != nil {
				before.Axes[i].Values = values
			}
		}
		today, old = append(today, r), append(old, &before)
	}
	answers := filepath.Join(t.TempDir(), "answers")
	if err := os.WriteFile(answers, files["packages"], 0o644); err != nil {
		t.Fatal(err)
	}
	s := &app.Session{Home: homeWithUV(t, []byte(strings.ReplaceAll(fakeIndex, "ANSWERS", answers))), Catalogue: cat, Note: t.Logf}
	s.Overrides = map[string][]string{}
	for name, tags := range files {
		if project, ok := strings.CutPrefix(name, "tags/"); ok {
			s.Overrides[project] = []string{repository(t, tags)}
		}
	}
	ask := func(rs []*recipe.Recipe) app.Updates {
		t.Helper()
		u, err := app.AskUpdates(t.Context(), s, app.UpdatesRequest{
			Recipes: rs, OlderThan: 7 * 24 * time.Hour, Now: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	if u := ask(today); len(u.New) > 0 || len(u.Unasked) > 0 {
		t.Errorf("today: new %+v, not asked %+v", u.New, u.Unasked)
	}
	then := ask(old)
	if len(then.Unasked) > 0 {
		t.Errorf("not asked: %+v", then.Unasked)
	}
	proposed := map[string]int{} // value to its cells
	for _, u := range then.New {
		proposed[u.Recipe+" --"+u.Axis+" "+u.Value] = u.Cells
	}
	for _, byHand := range []string{
		"horovod --tensorflow 2.21.0",
		"horovod --torch 2.13.0", "horovod --torch 2.14.1", "horovod --torch 2.15.0",
		"nccl-tests --cuda 13.1", "nccl-tests --cuda 13.5", "nccl-tests --library 2.30.7",
	} {
		if proposed[byHand] == 0 {
			t.Errorf("%s is not proposed, among %v", byHand, proposed)
		}
	}
	// No rule knows torch 2.12 and 2.14.0: nothing was built with them.
	for _, other := range []string{"horovod --torch 2.12.1", "horovod --torch 2.14.0"} {
		if cells, named := proposed[other]; !named || cells > 0 {
			t.Errorf("%s: %d cells, named %v", other, cells, named)
		}
	}
}
