package repo_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/acttest"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// ownAction is the action that installs builder.
const ownAction = ".github/actions/builder/action.yml"

// workflows returns the lines of all workflows and of the action, by file.
func workflows(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(".github/workflows/*.yml")
	must.Hold(t, err == nil && len(files) >= 4, "%d workflows, %v", len(files), err)
	all := map[string][]string{}
	for _, file := range append(files, ownAction) {
		text := must.Get(os.ReadFile(file))(t)
		all[file] = strings.Split(string(text), "\n")
	}
	return all
}

var (
	usesKey = regexp.MustCompile(`^\s*(?:- )?uses:\s*(.*)$`)
	pinned  = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	// This repository, at the commit of the workflow. A runner rejects $/ without a path.
	own = regexp.MustCompile(`^(\$/\.github/actions/builder|\./\.github/workflows/build\.yml)( #.*)?$`)
)

// A third party can move a tag, but not a commit.
func TestEveryActionIsPinned(t *testing.T) {
	atRoot(t)
	seen := map[string]string{}
	for file, lines := range workflows(t) {
		for i, line := range lines {
			m := usesKey.FindStringSubmatch(line)
			if m == nil || own.MatchString(m[1]) {
				continue
			}
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s:%d: %q is not a commit of 40 digits with the version behind it", file, i+1, m[1])
				continue
			}
			name, commit, _ := strings.Cut(m[1], "@")
			other := seen[name]
			check.That(t, other == "" || other == commit, "%s:%d: %s is pinned to %s and elsewhere to %s", file, i+1, name, commit, other)
			seen[name] = commit
		}
	}
	check.That(t, len(seen) >= 5, "only %d actions were found", len(seen))
}

// Every pull request builds one real cell with the public workflow build.yml.
func TestARealCellIsBuilt(t *testing.T) {
	atRoot(t)
	text := must.Get(os.ReadFile(filepath.Join(".github", "workflows", "ci.yml")))(t)
	call := "    uses: ./.github/workflows/build.yml\n    permissions:\n      contents: read\n    with:\n      cells: horovod --rocm 5.7\n"
	check.That(t, strings.Contains(string(text), call), "ci.yml does not call build.yml:\n%s", text)
}

var runKey = regexp.MustCompile(`^(\s*(?:- )?)run:`)

// An expression inserted into a script could become code. It must be passed through the
// environment.
func TestNoExpressionInABlock(t *testing.T) {
	atRoot(t)
	blocks := 0
	for file, lines := range workflows(t) {
		indent := -1 // of the key of the current block, or -1
		for i, line := range lines {
			if m := runKey.FindStringSubmatch(line); m != nil {
				indent = len(m[1])
				blocks++
			} else if strings.TrimSpace(line) != "" && len(line)-len(strings.TrimLeft(line, " ")) <= indent {
				indent = -1
			}
			check.That(t, indent < 0 || !strings.Contains(line, "${{"), "%s:%d: an expression stands in a block: %s", file, i+1, line)
		}
	}
	check.That(t, blocks >= 10, "only %d blocks were found", blocks)
}

// jobKey matches the name of a job.
var jobKey = regexp.MustCompile(`^  ([a-z]+):$`)

// secretUse matches the value of a secret, and not the question whether there is one.
var secretUse = regexp.MustCompile(`: \$\{\{ secrets\.([a-z-]+) \}\}`)

// The jobs that run what a cell holds have no secret with which they could sign or
// publish, and a pull request is neither signed nor published.
func TestSecretsOfJobs(t *testing.T) {
	atRoot(t)
	lines := workflows(t)[".github/workflows/build.yml"]
	job, has := "", map[string][]string{}
	for _, line := range lines[slices.Index(lines, "jobs:"):] {
		if m := jobKey.FindStringSubmatch(line); m != nil {
			job = m[1]
		}
		if m := secretUse.FindStringSubmatch(line); m != nil {
			has[job] = append(has[job], m[1])
		}
		if (job == "sign" || job == "publish") && strings.HasPrefix(line, "    if: ") && !strings.Contains(line, "&& !github.event.pull_request }}") {
			t.Errorf("the job %s runs for pull requests: %s", job, line)
		}
	}
	want := map[string][]string{
		"build":   {"reader-username", "reader-password"},
		"sign":    {"signing-key"},
		"publish": {"registry-username", "registry-password", "publish-token"},
	}
	check.That(t, maps.EqualFunc(has, want, slices.Equal), "the jobs have the secrets %v, want %v", has, want)
}

// A workflow has no permissions by default, and every job has a time limit.
func TestWorkflowsAreBounded(t *testing.T) {
	atRoot(t)
	for file, lines := range workflows(t) {
		if file == ownAction {
			continue
		}
		text := strings.Join(lines, "\n")
		check.That(t, strings.Contains(text, "\npermissions: {}\n"), "%s does not begin with no permission", file)
		check.That(t, strings.Contains(text, "\nconcurrency:\n"), "%s does not say what may run at once", file)
		if jobs, limits := strings.Count(text, "    runs-on: "), strings.Count(text, "    timeout-minutes: "); jobs != limits || jobs == 0 {
			t.Errorf("%s has %d jobs and %d limits of their time", file, jobs, limits)
		}
		check.That(t, !strings.Contains(text, "pull_request_target"),
			"%s runs what a stranger proposes with the rights of this repository", file)
	}
}

// A cache of Actions holds only the part of a home that a forger may write, as
// docs/trust.md says.
func TestCachesHoldTheStoreAlone(t *testing.T) {
	atRoot(t)
	caches := 0
	for file, lines := range workflows(t) {
		for i, line := range lines {
			if !strings.Contains(line, "uses: actions/cache") {
				continue
			}
			caches++
			block := strings.Join(lines[i+1:min(i+5, len(lines))], "\n")
			check.That(t, strings.Contains(block, "path: ${{ runner.temp }}/builder-home/store\n"),
				"%s:%d: the cache holds something else:\n%s", file, i+1, block)
		}
	}
	check.That(t, caches != 0, "no cache was found")
}

var inputKey = regexp.MustCompile(`(?m)^  ([a-z-]+):$`)

// docs/actions.md explains every input, secret and job of build.yml to its callers, and
// every input of the action.
func TestEveryInputIsExplained(t *testing.T) {
	atRoot(t)
	w := must.Get(acttest.Load(filepath.Join(".github", "workflows", "build.yml")))(t)
	page := must.Get(os.ReadFile(filepath.Join("docs", "actions.md")))(t)
	names := slices.Concat(slices.Collect(maps.Keys(w.On.Call.Inputs)), slices.Collect(maps.Keys(w.On.Call.Secrets)), slices.Collect(maps.Keys(w.Jobs)))
	must.Hold(t, len(names) >= 15, "only %v were found", names)
	for _, name := range names {
		check.That(t, strings.Contains(string(page), "`"+name+"`"), "docs/actions.md does not explain %s", name)
	}
	action, _, _ := strings.Cut(strings.Join(workflows(t)[ownAction], "\n"), "\noutputs:\n")
	inputs := inputKey.FindAllStringSubmatch(action, -1)
	must.Hold(t, len(inputs) >= 4, "only %q are inputs of the action", inputs)
	for _, m := range inputs {
		check.That(t, strings.Contains(string(page), "`"+m[1]+"`"), "docs/actions.md does not explain the input %s of the action", m[1])
	}
	for name := range w.On.Dispatch.Inputs {
		_, known := w.On.Call.Inputs[name]
		check.That(t, known, "a person can give %s, and a workflow that calls cannot", name)
	}
}
