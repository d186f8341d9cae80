package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"builder/internal/base/decode"
	"builder/test/kit/acttest"
	"builder/test/kit/must"
)

// repositoryRoot is relative to this package's directory, in which tests run.
var repositoryRoot = filepath.Join("..", "..")

// TestWorkflows runs build.yml with act if BUILDER_TEST_ACT=1: go install must fetch
// and compile act.
func TestWorkflows(t *testing.T) {
	if os.Getenv("BUILDER_TEST_ACT") != "1" {
		t.Skip("BUILDER_TEST_ACT=1 installs act and plays the workflows")
	}
	program := must.Get(acttest.Program())(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "workflow"),
		Setup:               alone,
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sealed": sealed, "serve": serve, "repository": repository, "seal": seal,
			"workflow": func(ts *testscript.TestScript, neg bool, args []string) { workflow(ts, program, neg, args) },
		},
	})
}

// workflow runs build.yml, or another file, as called by the repository in a directory:
// workflow DIR [file=FILE] [example=NAME] [fork] [secret:NAME=FILE | INPUT=VALUE]...
// With an example, the call is that of docs/examples/actions/NAME.yml: its inputs apply
// unless given here, and of the secrets given here only those that it names are passed.
// With fork the event is a pull request from a fork. Afterwards the file jobs has the
// results of the jobs, log their output, and summary the summary.
//
// The program is the one under test: a script replaces go, which the action runs to
// build it.
func workflow(ts *testscript.TestScript, program string, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: workflow DIR [file=FILE] [example=NAME] [fork] [secret:NAME=FILE | INPUT=VALUE]...")
	}
	root, err := filepath.Abs(repositoryRoot)
	ts.Check(err)
	dir, err := os.MkdirTemp(ts.MkAbs("."), "github-")
	ts.Check(err)
	call := acttest.Call{
		Program: program, Workflow: filepath.Join(root, ".github", "workflows", "build.yml"), Checkout: ts.MkAbs(args[0]), Own: ownAction(ts, root, dir),
		Dir: dir, Env: runnerEnv(ts, dir), Inputs: map[string]string{}, Secrets: map[string]string{},
	}
	var example string
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		secret, isSecret := strings.CutPrefix(name, "secret:")
		switch {
		case name == "file":
			call.Workflow = ts.MkAbs(value)
		case name == "example":
			example = value
		case arg == "fork":
			call.Fork = true
		case isSecret:
			call.Secrets[secret] = ts.ReadFile(value)
		default:
			call.Inputs[name] = value
		}
	}
	if _, given := call.Inputs["disk"]; !given && filepath.Base(call.Workflow) == "build.yml" {
		call.Inputs["disk"] = "0" // nothing large is built here
	}
	if example != "" {
		ts.Check(asExample(&call, example))
	}
	result, err := call.Play(context.Background())
	ts.Logf("%s", result.Log)
	ts.Check(err)
	for name, text := range map[string]string{"jobs": result.String(), "log": result.Log, "summary": result.Summary} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o644))
	}
	ts.Check(os.RemoveAll(dir))
}

// ownAction returns a copy of the parts of this repository that the action needs: act
// copies the whole repository for each job.
func ownAction(ts *testscript.TestScript, root, dir string) string {
	own := filepath.Join(dir, "own")
	for _, file := range []string{"go.mod", "go.sum", "cmd/builder/main.go", ".github/actions/builder/action.yml", "gate/action.yml"} {
		data, err := os.ReadFile(filepath.Join(root, file))
		ts.Check(err)
		ts.Check(os.MkdirAll(filepath.Dir(filepath.Join(own, file)), 0o755))
		ts.Check(os.WriteFile(filepath.Join(own, file), data, 0o644))
	}
	return own
}

// asExample calls build.yml like an example of docs/actions.md.
func asExample(call *acttest.Call, name string) error {
	var shown shownWorkflow
	file := filepath.Join(repositoryRoot, "docs", "examples", "actions", name+".yml")
	data, err := os.ReadFile(file)
	if err == nil {
		_, err = decode.YAML(file, data, &shown)
	}
	if err != nil {
		return err
	}
	for _, job := range shown.Jobs {
		for input, value := range job.With {
			if _, given := call.Inputs[input]; !given {
				call.Inputs[input] = value
			}
		}
		maps.DeleteFunc(call.Secrets, func(secret, _ string) bool { return job.Secrets[secret] == "" })
	}
	return nil
}

// runnerEnv returns the environment of a runner: the programs of its image, and nothing
// of the script's state.
func runnerEnv(ts *testscript.TestScript, dir string) map[string]string {
	program, err := exec.LookPath(filepath.Join(ts.Getenv("PATH"), "builder"))
	ts.Check(err)
	tools := filepath.Join(dir, "tools")
	ts.Check(os.MkdirAll(tools, 0o755))
	// go build -C SOURCE -trimpath -o PROGRAM ./cmd/builder
	compiler := fmt.Sprintf(`#!/bin/bash -e
[ "$1 $2 $4 $5 $7" = "build -C -trimpath -o ./cmd/builder" ] && [ -f "$3/cmd/builder/main.go" ]
mkdir -p "$(dirname "$6")"
printf '#!/bin/bash\nexec %s "$@"\n' > "$6"
chmod +x "$6"
`, program)
	ts.Check(os.WriteFile(filepath.Join(tools, "go"), []byte(compiler), 0o755))
	env := map[string]string{"PATH": tools + ":/usr/bin:/bin", "HOME": dir, "TMPDIR": dir, "PIP_RETRIES": "0"}
	for _, name := range []string{"BUILDER_NO_INSTALL", "BUILDER_MIRROR_DEBIAN", "http_proxy", "https_proxy", "no_proxy", "UV_OFFLINE"} {
		env[name] = ts.Getenv(name)
	}
	return env
}
