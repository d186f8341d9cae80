package actionstest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/plan/ci/actionstest"
)

// execute runs a workflow of these jobs, called with a as the input who, by a
// repository that holds one file.
func execute(t *testing.T, jobs string) (actionstest.Result, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "workflow.yml")
	text := "name: test\non:\n  workflow_call:\n    inputs:\n      who: {type: string, default: nobody}\ndefaults: {run: {shell: bash}}\njobs:\n" + jobs
	checkout := filepath.Join(dir, "checkout")
	if err := os.Mkdir(checkout, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{path: text, filepath.Join(checkout, "file"): "checked out\n"} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := actionstest.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	service := actionstest.Service{
		Checkout: checkout, Dir: filepath.Join(dir, "service"), Env: map[string]string{"PATH": os.Getenv("PATH")},
		Inputs: map[string]string{"who": "a"},
	}
	return service.Execute(context.Background(), w)
}

// What a step writes is seen by those behind it, and by the jobs that need it.
func TestExecute(t *testing.T) {
	result, err := execute(t, `
  first:
    runs-on: any
    outputs: {list: "${{ steps.list.outputs.list }}"}
    steps:
      - id: list
        env: {WHO: "${{ inputs.who }}"}
        run: |
          echo "list={\"include\":[{\"n\":\"$WHO\"},{\"n\":\"b\"}]}" >> "$GITHUB_OUTPUT"
          echo "SEEN=yes" >> "$GITHUB_ENV"
          echo "$RUNNER_TEMP/bin" >> "$GITHUB_PATH"
          mkdir "$RUNNER_TEMP/bin"
          printf '#!/bin/sh\necho found >> "$GITHUB_STEP_SUMMARY"\n' > "$RUNNER_TEMP/bin/tool"
          chmod +x "$RUNNER_TEMP/bin/tool"
      - run: tool && [ "$SEEN" = yes ] && [ -z "$WHO" ]
  each:
    name: ${{ matrix.n }}
    needs: [first]
    runs-on: any
    strategy: {matrix: "${{ fromJSON(needs.first.outputs.list) }}"}
    steps:
      - run: echo each >> "$GITHUB_STEP_SUMMARY"
      - env: {N: "${{ matrix.n }}"}
        run: '[ "$N" = a ]'
      - run: echo not behind a failure >> "$GITHUB_STEP_SUMMARY"
      - if: ${{ failure() }}
        run: echo after >> "$GITHUB_STEP_SUMMARY"
  behind:
    needs: [each]
    runs-on: any
    steps: [{run: "true"}]
  last:
    needs: [first, each, behind]
    if: ${{ always() && needs.each.result == 'failure' && needs.behind.result == 'skipped' }}
    runs-on: any
    steps: [{run: "true"}]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := "first: first: success\neach: a: success\neach: b: failure\nbehind: behind: skipped\nlast: last: success\n"
	if diff := cmp.Diff(want, result.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "found\neach\nnot behind a failure\neach\nafter\n"; result.Summary != want {
		t.Errorf("the summary is %q, want %q", result.Summary, want)
	}
}

// Artifacts lose modes and hidden files, and lie below what their paths have in
// common; a cache is there for the job that wants it next.
func TestStandIns(t *testing.T) {
	result, err := execute(t, `
  one:
    runs-on: any
    steps:
      - uses: actions/checkout@x
      - uses: actions/cache@x
        with: {path: cache, key: k-1, restore-keys: k-}
      - run: |
          [ "$(cat file)" = "checked out" ] && [ ! -e cache ]
          mkdir -p out/a/logs cache && touch out/run.json out/a/logs/x out/a/other out/.lock cache/kept && chmod +x out/run.json
      - uses: actions/upload-artifact@x
        with: {name: all, path: out}
      - uses: actions/upload-artifact@x
        with: {name: run-1, path: "out/run.json\nout/*/logs"}
  two:
    needs: [one]
    runs-on: any
    steps:
      - uses: actions/cache@x
        with: {path: cache, key: k-2, restore-keys: k-}
      - uses: actions/download-artifact@x
        with: {name: all, path: out}
      - uses: actions/download-artifact@x
        with: {pattern: "run-*", path: runs}
      - run: |
          find out runs cache -type f | sort >> "$GITHUB_STEP_SUMMARY"
          [ ! -x out/run.json ]
      - uses: actions/upload-artifact@x
        with: {name: all, path: out}
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "cache/kept\nout/a/logs/x\nout/a/other\nout/run.json\nruns/run-1/a/logs/x\nruns/run-1/run.json\n"; result.Summary != want {
		t.Errorf("there is\n%swant\n%s", result.Summary, want)
	}
	two := result.Jobs[len(result.Jobs)-1]
	if two.Result != "failure" || !strings.Contains(two.Log, "an artifact all is there") {
		t.Errorf("a second artifact of one name: %s\n%s", two.Result, two.Log)
	}
}

// What is not known here ends the test instead of passing it.
func TestExecuteRefuses(t *testing.T) {
	for name, c := range map[string]struct{ steps, says string }{
		"action":     {`[{uses: somebody/thing@x}]`, `nothing stands in for "somebody/thing@x"`},
		"bare own":   {`[{uses: $/}]`, `nothing stands in for "$/"`}, // actions/runner rejects it
		"setting":    {`[{uses: actions/checkout@x, with: {ref: main}}]`, "the setting ref is not known"},
		"expression": {`[{run: "echo ${{ inputs.who }}"}]`, "an expression stands in a block"},
		"shell":      {`[{run: "true", shell: pwsh}]`, "only bash is known"},
		"output":     {`[{run: "echo 'a<<E' >> $GITHUB_OUTPUT"}]`, "only NAME=VALUE is known"},
		"context":    {`[{run: "true", env: {A: "${{ vars.x }}"}}]`, `"vars" is not known`},
	} {
		_, err := execute(t, "  one: {runs-on: any, steps: "+c.steps+"}\n")
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for name, c := range map[string]struct{ jobs, says string }{
		"circle": {"  a: {needs: [b]}\n  b: {needs: [a]}\n", "wait for each other"},
		"matrix": {"  a: {runs-on: any, strategy: {matrix: \"${{ fromJSON('{\\\"include\\\":[]}') }}\"}}\n", "none without items"},
		"label":  {"  a: {steps: []}\n", "runs-on is"},
	} {
		if _, err := execute(t, c.jobs); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
