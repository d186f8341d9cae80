package actionstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// runner is the machine of one job.
type runner struct {
	*run
	workspace, temp, summary string
	env                      map[string]string // of the job, and what its steps add
	path                     []string          // what its steps put before PATH
	did                      map[string]any    // the context steps
	caches                   []cached
	failed                   bool
	files                    int
	log                      strings.Builder
}

func newRunner(r *run, dir string, at scope) (*runner, error) {
	m := &runner{
		run: r, workspace: filepath.Join(dir, "workspace"), temp: filepath.Join(dir, "temp"),
		summary: filepath.Join(dir, "summary.md"), did: map[string]any{},
	}
	at.contexts["steps"] = m.did
	return m, errors.Join(os.MkdirAll(m.workspace, 0o755), os.MkdirAll(m.temp, 0o755), os.WriteFile(m.summary, nil, 0o644))
}

// here is a scope with the state of the job and its variables.
func (m *runner) here(at scope) scope {
	at.ok = !m.failed
	at.contexts = maps.Clone(at.contexts)
	at.contexts["env"] = anyMap(m.env)
	return at
}

// steps runs steps in order; after one failed only those that ask for that.
func (m *runner) steps(ctx context.Context, steps []step, at scope) error {
	for i, s := range steps {
		holds, err := m.here(at).holds(s.If)
		if err == nil && holds {
			err = m.step(ctx, s, at)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s%s: %w", i+1, s.Name, s.Uses, err)
		}
	}
	return nil
}

func (m *runner) step(ctx context.Context, s step, at scope) error {
	env, err := m.here(at).texts(s.Env)
	if err != nil {
		return err
	}
	fmt.Fprintf(&m.log, "== %s%s\n", s.Name, s.Uses)
	var outputs map[string]string
	var failure error
	if s.Uses == "" {
		outputs, failure, err = m.bash(ctx, s, env)
	} else {
		var with map[string]string
		if with, err = m.here(at).texts(s.With); err == nil {
			outputs, failure, err = m.action(ctx, s.Uses, with)
		}
	}
	if failure != nil {
		m.failed = true
		fmt.Fprintf(&m.log, "failed: %v\n", failure)
	}
	if s.ID != "" {
		m.did[s.ID] = map[string]any{"outputs": anyMap(outputs)}
	}
	return err
}

// files that a step may write to, by the variables that name them.
var commandFiles = []string{"GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH"}

// bash runs a block as Actions does where its shell is bash.
func (m *runner) bash(ctx context.Context, s step, env map[string]string) (outputs map[string]string, failure, err error) {
	if s.Shell != "bash" && (s.Shell != "" || m.workflow.Defaults.Run.Shell != "bash") {
		return nil, nil, fmt.Errorf("the shell is %q, and only bash is known here", s.Shell)
	}
	if strings.Contains(s.Run, "${{") {
		return nil, nil, errors.New("an expression stands in a block")
	}
	m.files++
	dir := filepath.Join(filepath.Dir(m.temp), fmt.Sprintf("step-%d", m.files))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	all := maps.Clone(m.Env)
	maps.Copy(all, map[string]string{
		"RUNNER_TEMP": m.temp, "GITHUB_WORKSPACE": m.workspace, "GITHUB_STEP_SUMMARY": m.summary, "GITHUB_ACTIONS": "true", "CI": "true",
		"PATH": strings.Join(append(slices.Clone(m.path), m.Env["PATH"]), ":"),
	})
	for _, name := range commandFiles {
		all[name] = filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(all[name], nil, 0o644))
	}
	maps.Copy(all, m.env)
	maps.Copy(all, env)
	script := filepath.Join(dir, "script.sh")
	if err := errors.Join(err, os.WriteFile(script, []byte(s.Run), 0o644)); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.workspace, &m.log, &m.log
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	failure = cmd.Run()
	outputs, err = m.commands(all)
	return outputs, failure, err
}

// commands takes over what a step wrote into its files.
func (m *runner) commands(env map[string]string) (map[string]string, error) {
	outputs, err1 := settings(env["GITHUB_OUTPUT"])
	variables, err2 := settings(env["GITHUB_ENV"])
	maps.Copy(m.env, variables)
	text, err3 := os.ReadFile(env["GITHUB_PATH"])
	m.path = append(strings.Fields(string(text)), m.path...)
	return outputs, errors.Join(err1, err2, err3)
}

// settings reads lines NAME=VALUE.
func settings(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || strings.Contains(name, "<<") {
			return nil, fmt.Errorf("%q: only NAME=VALUE is known here", line)
		}
		all[name] = value
	}
	return all, nil
}

// own runs the action of our own in a directory, as a composite does: its steps on the same machine, with
// inputs and outputs of its own.
func (m *runner) own(ctx context.Context, dir string, with map[string]string) (map[string]string, error) {
	var c composite
	if err := load(filepath.Join(dir, "action.yml"), &c); err != nil {
		return nil, err
	}
	inputs, err := given(c.Inputs, with)
	if err != nil {
		return nil, err
	}
	before := m.did
	m.did = map[string]any{}
	defer func() { m.did = before }()
	at := scope{contexts: map[string]any{
		"inputs": anyMap(inputs), "steps": m.did, "runner": map[string]any{"temp": m.temp},
		"github": map[string]any{"action_path": dir, "event": m.Event},
	}}
	if err := m.steps(ctx, c.Runs.Steps, at); err != nil {
		return nil, err
	}
	outputs := map[string]string{}
	for name, out := range c.Outputs {
		if m.failed {
			continue // what it would have come from may not be there
		}
		if outputs[name], err = m.here(at).text(out.Value); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}
