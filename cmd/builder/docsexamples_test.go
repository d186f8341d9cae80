package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/base/decode"
	"builder/internal/plan/recipe"
	"builder/test/kit/acttest"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// shownWorkflow has all fields allowed in a workflow of the pages.
type shownWorkflow struct {
	Name        string              `yaml:"name"`
	On          []string            `yaml:"on"`
	Permissions map[string]string   `yaml:"permissions"`
	Jobs        map[string]shownJob `yaml:"jobs"`
}

type shownJob struct {
	Uses        string            `yaml:"uses"`
	Needs       string            `yaml:"needs"`
	RunsOn      string            `yaml:"runs-on"`
	With        map[string]string `yaml:"with"`
	Secrets     map[string]string `yaml:"secrets"`
	Permissions map[string]string `yaml:"permissions"`
	Strategy    struct {
		Matrix map[string][]int `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []struct {
		Uses string            `yaml:"uses"`
		Run  string            `yaml:"run"`
		With map[string]string `yaml:"with"`
	} `yaml:"steps"`
}

// A workflow in the pages must call a workflow with its inputs and secrets, and name
// existing cells.
func TestWorkflowsOfPages(t *testing.T) {
	t.Setenv("BUILDER_RECIPES", "")
	files, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "examples", "actions", "*.yml"))
	must.Hold(t, err == nil && len(files) != 0, "%d files, %v", len(files), err)
	calls := 0
	for _, file := range files {
		var w shownWorkflow
		readYAML(t, file, &w)
		for name, job := range w.Jobs {
			var called acttest.Workflow
			if path, ours := strings.CutPrefix(job.Uses, "OWNER/builder/"); ours {
				path, _, _ = strings.Cut(path, "@")
				if called, err = acttest.Load(filepath.Join(repositoryRoot, path)); err != nil {
					t.Errorf("%s: %s: %v", file, name, err)
				}
			}
			for input := range job.With {
				_, known := called.On.Call.Inputs[input]
				check.That(t, known, "%s: %s: %s has no input %s", file, name, job.Uses, input)
			}
			for secret := range job.Secrets {
				_, known := called.On.Call.Secrets[secret]
				check.That(t, known, "%s: %s: %s has no secret %s", file, name, job.Uses, secret)
			}
			if cells := job.With["cells"]; cells != "" {
				calls++
				parses(t, file, "builder matrix "+strings.ReplaceAll(cells, "${{ matrix.part }}", "1"))
			}
			for _, step := range job.Steps {
				ownAction, ours := strings.CutPrefix(step.Uses, "OWNER/builder/")
				if ours {
					ownAction, _, _ = strings.Cut(ownAction, "@")
					_, err := os.Stat(filepath.Join(repositoryRoot, ownAction, "action.yml"))
					check.That(t, err == nil, "%s: %s: %v", file, name, err)
				}
				if step.With["run"] != "" {
					calls++
					parses(t, file, "builder run "+step.With["run"])
				}
			}
		}
	}
	check.That(t, calls >= 5, "only %d calls were found", calls)
}

// The pipeline in the page on other CI services must build the cells of the example.
func TestPipelineOfPages(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(repositoryRoot, "docs", "examples", "other-ci", "gitlab-ci.yml")
	type job struct {
		Extends   string   `yaml:"extends"`
		Stage     string   `yaml:"stage"`
		When      string   `yaml:"when"`
		Parallel  int      `yaml:"parallel"`
		Script    []string `yaml:"script"`
		Artifacts struct {
			When    string            `yaml:"when"`
			Paths   []string          `yaml:"paths"`
			Reports map[string]string `yaml:"reports"`
		} `yaml:"artifacts"`
	}
	var pipeline struct {
		Stages  []string            `yaml:"stages"`
		Cells   job                 `yaml:"cells"`
		Include []map[string]string `yaml:"include"`
	}
	readYAML(t, file, &pipeline)
	host := reader(t)
	host.Dir = filepath.Join(host.Dir, "examples") // the directory of site
	print := func(line string) {
		t.Helper()
		printed, code, err := host.Do(t.Context(), line)
		must.Hold(t, code == 0 && err == nil, "%s: %d, %v\n%s", line, code, err, printed)
	}
	print(strings.NewReplacer("$CI_NODE_INDEX", "1", "$CI_NODE_TOTAL", "1").Replace(pipeline.Cells.Script[0]))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", pipeline.Cells.Script[1])
	cmd.Dir = host.Dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	commands, err := os.ReadFile(filepath.Join(host.Dir, "part.sh"))
	check.That(t, err == nil && strings.Count(string(commands), "builder run 'dotprod' '--recipes' 'site' ") == 3 && strings.HasSuffix(string(commands), "\nexit $failed\n"),
		"%v: %s", err, commands)
}

// parses fails the test if the program cannot parse the command.
func parses(t *testing.T, file, command string) {
	t.Helper()
	err := parse(strings.Fields(command))
	check.That(t, err == nil, "%s: %s: %v", file, command, err)
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		_, err = decode.YAML(file, data, into)
	}
	must.Succeed(t, err)
}

// The part of a recipe in the page on gates must be valid.
func TestWaiverOfPages(t *testing.T) {
	var part struct {
		Expect recipe.Expect `yaml:"expect"`
	}
	readYAML(t, filepath.Join(repositoryRoot, "docs", "examples", "waived.yaml"), &part)
	check.That(t, len(part.Expect.Waivers) == 1 && part.Expect.Waivers[0].Gate == "glibc-floor", "got %+v", part.Expect.Waivers)
}
