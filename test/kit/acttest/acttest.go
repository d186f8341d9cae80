// Package acttest runs GitHub Actions workflows on this host, for tests. The program
// act runs the jobs. Third-party actions would have to be downloaded, so small actions
// of this package replace them.
package acttest

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"
)

// Module is the version of act, as an argument of go install.
const Module = "github.com/nektos/act@v0.2.89"

// actions replace third-party actions, by the last part of their name.
//
//go:embed actions
var actions embed.FS

// Program installs act and returns its path. The host's Go compiles it once.
var Program = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "builder-test", strings.ReplaceAll(path.Base(Module), "@", "-"))
	program := filepath.Join(dir, "act")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.Command("go", "install", Module)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w\n%s", Module, err, out)
	}
	return program, nil
})

// A Call calls a workflow as another repository would.
type Call struct {
	Program  string            // path of act
	Workflow string            // file of the workflow
	Checkout string            // directory of the calling repository
	Own      string            // directory of the workflow's repository
	Dir      string            // empty directory for all output of the jobs
	Env      map[string]string // the runner's whole environment
	Inputs   map[string]string
	Secrets  map[string]string
	Fork     bool // the event is a pull request from a fork
}

// A Result is the result of a call.
type Result struct {
	Jobs    []Job  // jobs that ran, in order of their start; jobs of a matrix by name
	Log     string // all output of act and the steps
	Summary string // all text written to GITHUB_STEP_SUMMARY
}

// A Job is a job that ran. A matrix has one Job for each item.
type Job struct{ ID, Name, Result string }

// String lists the jobs, one per line.
func (r Result) String() string {
	var out strings.Builder
	for _, j := range r.Jobs {
		fmt.Fprintf(&out, "%s: %s: %s\n", j.ID, j.Name, j.Result)
	}
	return out.String()
}

// Play runs the workflow. A failed job is part of the result, not an error.
func (c Call) Play(ctx context.Context) (Result, error) {
	site := filepath.Join(c.Dir, "site")
	if err := os.CopyFS(site, os.DirFS(c.Checkout)); err != nil {
		return Result{}, err
	}
	args, err := c.prepare(site)
	if err != nil {
		return Result{}, err
	}
	programs := filepath.Join(c.Dir, "programs")
	if err := errors.Join(os.MkdirAll(programs, 0o755), os.WriteFile(filepath.Join(programs, "bash"), []byte(lingering), 0o755)); err != nil {
		return Result{}, err
	}
	cmd := exec.CommandContext(ctx, c.Program, args...)
	cmd.Dir = site
	for name, value := range c.Env {
		if name == "PATH" {
			value = programs + ":" + value
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, failed := cmd.Output()
	result, err := read(stdout)
	result.Log += stderr.String()
	if exit, ok := errors.AsType[*exec.ExitError](failed); failed != nil && (!ok || exit.ExitCode() != 1 || len(result.Jobs) == 0) {
		err = errors.Join(err, fmt.Errorf("act: %w\n%s", failed, result.Log))
	}
	return result, err
}

// lingering is the shell of all steps. If a step fails, act closes its terminal at once
// and loses all output that it has not read yet, so the shell ends a second later.
const lingering = `#!/bin/sh
/bin/bash "$@"
code=$?
[ "$code" = 0 ] || sleep 1
exit "$code"
`

// prepare writes the input files of act and returns its arguments.
func (c Call) prepare(site string) ([]string, error) {
	text, err := os.ReadFile(c.Workflow)
	if err != nil {
		return nil, err
	}
	// act does not support $/ (nektos/act#6189), so the action gets the name of a
	// repository.
	text = bytes.ReplaceAll(text, []byte("uses: $/.github/actions/builder"), []byte("uses: own/builder/.github/actions/builder@here"))
	event := "push"
	if c.Fork {
		event = "pull_request"
	}
	args := []string{
		event, "--json", "--no-cache-server", "--workflows", ".github/workflows/calls.yml", "--action-cache-path", filepath.Join(c.Dir, "jobs"),
		"--env", "ARTIFACTS=" + filepath.Join(c.Dir, "artifacts"), "--local-repository", "own/builder@here=" + c.Own,
		"--eventpath", filepath.Join(c.Dir, "event.json"), "--secret-file", filepath.Join(c.Dir, "secrets.yml"),
	}
	for _, label := range []string{"ubuntu-24.04", c.Inputs["runner"], c.Inputs["gpu-runner"]} { // this host serves as every runner
		if label != "" {
			args = append(args, "--platform", label+"=-self-hosted")
		}
	}
	own, err := os.ReadFile(filepath.Join(c.Own, ".github", "actions", "builder", "action.yml"))
	if err != nil {
		return nil, err
	}
	used, err := steps(text, own)
	if err != nil {
		return nil, err
	}
	stands, err := c.standIns(used)
	if err != nil {
		return nil, err
	}
	return append(args, stands...), errors.Join(c.write(site, text), os.MkdirAll(filepath.Join(c.Dir, "artifacts"), 0o755))
}

// write writes the workflow, a workflow that calls it, the secrets and the event.
func (c Call) write(site string, called []byte) error {
	secrets, named := map[string]string{}, map[string]string{}
	for name, value := range c.Secrets {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		secrets[variable], named[name] = value, "${{ secrets."+variable+" }}"
	}
	event := map[string]any{}
	if c.Fork {
		event["pull_request"] = map[string]any{"head": map[string]any{"repo": map[string]string{"full_name": "stranger/site"}}}
	}
	workflows := filepath.Join(site, ".github", "workflows")
	job := map[string]any{"uses": "./.github/workflows/called.yml", "with": c.Inputs, "secrets": named}
	return errors.Join(
		os.MkdirAll(workflows, 0o755),
		os.WriteFile(filepath.Join(workflows, "called.yml"), called, 0o644),
		writeJSON(filepath.Join(workflows, "calls.yml"), map[string]any{"name": "site", "on": []string{"push", "pull_request"}, "jobs": map[string]any{"site": job}}), // JSON is valid YAML
		writeJSON(filepath.Join(c.Dir, "secrets.yml"), secrets),
		writeJSON(filepath.Join(c.Dir, "event.json"), event),
	)
}

// A step is a step of a job, with the action it uses.
type step struct {
	Uses string         `yaml:"uses"`
	With map[string]any `yaml:"with"`
}

// steps returns the steps of workflows and actions.
func steps(texts ...[]byte) ([]step, error) {
	var all []step
	for _, text := range texts {
		var file struct {
			Jobs map[string]struct {
				Steps []step `yaml:"steps"`
			} `yaml:"jobs"`
			Runs struct {
				Steps []step `yaml:"steps"`
			} `yaml:"runs"`
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, err
		}
		all = append(all, file.Runs.Steps...)
		for _, job := range file.Jobs {
			all = append(all, job.Steps...)
		}
	}
	return all, nil
}

// standIns writes a replacement for each third-party action in steps and returns the
// arguments of act for them. It fails if an action has no replacement, or if the
// replacement lacks an input in use.
func (c Call) standIns(steps []step) ([]string, error) {
	var args []string
	for _, s := range steps {
		name, _, _ := strings.Cut(s.Uses, "@")
		if name == "" || strings.HasPrefix(name, "own/") {
			continue
		}
		text, err := fs.ReadFile(actions, path.Join("actions", path.Base(name), "action.yml"))
		if err != nil {
			return nil, fmt.Errorf("no stand-in for the action %s: %w", name, err)
		}
		var declared Declared
		if err := yaml.Unmarshal(text, &declared); err != nil {
			return nil, err
		}
		for setting := range s.With {
			if _, known := declared.Inputs[setting]; !known {
				return nil, fmt.Errorf("the stand-in for the action %s has no setting %s", name, setting)
			}
		}
		dir := filepath.Join(c.Dir, "actions", path.Base(name))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "action.yml"), text, 0o644)); err != nil {
			return nil, err
		}
		args = append(args, "--local-repository", s.Uses+"="+dir)
	}
	return args, nil
}

func writeJSON(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// event is a line of act's log.
type event struct {
	Job     string         `json:"job"`
	ID      string         `json:"jobID"`
	Matrix  map[string]any `json:"matrix"`
	Step    string         `json:"stepResult"`
	Result  string         `json:"jobResult"`
	Message string         `json:"msg"`
	Command string         `json:"command"`
	Content string         `json:"content"`
}

// number matches the suffix of a matrix job's name.
var number = regexp.MustCompile(`-[0-9]+$`)

// name returns the job's name without the names of its callers, and without the number
// that act adds to each job of a matrix.
func (e event) name() string {
	name := strings.TrimSpace(path.Base(e.Job))
	if len(e.Matrix) > 0 {
		name = number.ReplaceAllString(name, "")
	}
	return name
}

// noise matches messages of act about its own work, which occur many times per step.
var noise = regexp.MustCompile(`^LocalRepositoryCache |^path.*not located inside a git repository|^unable to get git `)

// result returns the result of the job. After a failed job of a matrix, act reports all
// later jobs of the matrix as failed. For them the results of the steps are used.
func (e event) result(steps map[string]string) string {
	if did := steps[e.ID+e.Job]; did != "" && len(e.Matrix) > 0 {
		return did
	}
	return e.Result
}

// read parses act's log.
func read(log []byte) (Result, error) {
	var result Result
	var order []string
	steps := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return result, fmt.Errorf("act printed %q: %w", lines.Text(), err)
		}
		if noise.MatchString(e.Message) {
			continue
		}
		if job := e.ID + e.Job; e.Step == "failure" || e.Step == "success" && steps[job] == "" {
			steps[job] = e.Step
		}
		result.Log += e.ID + ": " + strings.TrimSuffix(e.Message, "\n") + "\n"
		if e.Command == "summary" {
			result.Summary += e.Content
		}
		if e.ID != "" && !slices.Contains(order, e.ID) {
			order = append(order, e.ID)
		}
		if e.Result != "" {
			result.Jobs = append(result.Jobs, Job{e.ID, e.name(), e.result(steps)})
		}
	}
	slices.SortFunc(result.Jobs, func(a, b Job) int {
		if n := slices.Index(order, a.ID) - slices.Index(order, b.ID); n != 0 {
			return n
		}
		return strings.Compare(a.Name, b.Name)
	})
	return result, lines.Err()
}

// A Workflow is the interface of a workflow for its callers.
type Workflow struct {
	On struct {
		Call     Declared `yaml:"workflow_call"`
		Dispatch Declared `yaml:"workflow_dispatch"`
	} `yaml:"on"`
	Jobs map[string]any `yaml:"jobs"`
}

// Declared lists the inputs and secrets of a workflow by name.
type Declared struct {
	Inputs  map[string]any `yaml:"inputs"`
	Secrets map[string]any `yaml:"secrets"`
}

// Load reads a workflow.
func Load(file string) (Workflow, error) {
	var w Workflow
	data, err := os.ReadFile(file)
	if err != nil {
		return w, err
	}
	return w, yaml.Unmarshal(data, &w)
}
