package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"builder/internal/base/decode"
	"builder/internal/plan/ci/actionstest"
)

// repositoryRoot is seen from the directory of this package, in which tests run.
var repositoryRoot = filepath.Join("..", "..")

// workflow executes build.yml, or another file, as GitHub Actions would, called by
// the repository that lies in a directory: workflow DIR [file=FILE] [example=NAME]
// [fork] [secret:NAME=FILE | INPUT=VALUE]... With an example, the call is the one of
// docs/examples/actions/NAME.yml: its inputs where none is given here, and of the
// secrets given here those that it names. With fork a pull request from a fork is the
// event. What became of the jobs is in the file jobs then, what they printed in
// log, and the summary in summary.
//
// The program is the one under test: go, which the action calls to build it, is
// stood in for by a script that puts it where go would.
func workflow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: workflow DIR [file=FILE] [example=NAME] [fork] [secret:NAME=FILE | INPUT=VALUE]...")
	}
	root, err := filepath.Abs(repositoryRoot)
	ts.Check(err)
	file := filepath.Join(root, ".github", "workflows", "build.yml")
	dir, err := os.MkdirTemp(ts.MkAbs("."), "github-")
	ts.Check(err)
	service := actionstest.Service{
		Checkout: ts.MkAbs(args[0]), Own: root, Dir: dir, Env: runnerEnv(ts, dir),
		Inputs: map[string]string{}, Secrets: map[string]string{}, Event: map[string]any{},
	}
	var example string
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		secret, isSecret := strings.CutPrefix(name, "secret:")
		switch {
		case name == "file":
			file = ts.MkAbs(value)
		case name == "example":
			example = value
		case arg == "fork":
			fork := map[string]any{"full_name": "stranger/site"}
			service.Event["pull_request"] = map[string]any{"head": map[string]any{"repo": fork}}
		case isSecret:
			service.Secrets[secret] = ts.ReadFile(value)
		default:
			service.Inputs[name] = value
		}
	}
	if _, given := service.Inputs["disk"]; !given && filepath.Base(file) == "build.yml" {
		service.Inputs["disk"] = "0" // nothing large is built here
	}
	if example != "" {
		ts.Check(asExample(&service, example))
	}
	w, err := actionstest.Load(file)
	ts.Check(err)
	result, err := service.Execute(context.Background(), w)
	var log strings.Builder
	for _, j := range result.Jobs {
		fmt.Fprintf(&log, "==== %s: %s\n%s", j.ID, j.Name, j.Log)
	}
	ts.Logf("%s", log.String())
	ts.Check(err)
	ts.Check(errors.Join(
		os.WriteFile(ts.MkAbs("jobs"), []byte(result.String()), 0o644),
		os.WriteFile(ts.MkAbs("log"), []byte(log.String()), 0o644),
		os.WriteFile(ts.MkAbs("summary"), []byte(result.Summary), 0o644),
	))
}

// asExample calls build.yml as an example of docs/actions.md does.
func asExample(service *actionstest.Service, name string) error {
	var shown shownWorkflow
	file := filepath.Join(repositoryRoot, "docs", "examples", "actions", name+".yml")
	data, err := os.ReadFile(file)
	if err == nil {
		err = decode.YAML(file, data, &shown)
	}
	if err != nil {
		return err
	}
	for _, job := range shown.Jobs {
		for input, value := range job.With {
			if _, given := service.Inputs[input]; !given {
				service.Inputs[input] = value
			}
		}
		maps.DeleteFunc(service.Secrets, func(secret, _ string) bool { return job.Secrets[secret] == "" })
	}
	return nil
}

// runnerEnv is what a runner has: the programs of its image, and nothing of the
// script's own state.
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
