package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"builder/test/kit/acttest"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// workflow runs every step of build.yml on real cells, as a repository with its own
// recipes would: the plan, a job for each cell, the publication and the final report.
func workflow(b *tool) {
	checkout, _ := b.steady()
	key := must.Get(os.ReadFile(filepath.Join(b.home, "key.pem.pub")))(b.t)
	must.Succeed(b.t, os.WriteFile(filepath.Join(checkout, "ours.pem.pub"), key, 0o644))
	place := filepath.Join(b.t.TempDir(), "index")

	// The wheel of Horovod, already built by this story.
	said := b.executes(checkout, map[string]string{"cells": "horovod --rocm 5.7", "publish": "file:" + place, "trust": "ours.pem.pub"})
	contains(b.t, said, "### builder: 1 cell passed", "cp311 | pass | ")
	found, err := filepath.Glob(filepath.Join(place, "files", "horovod", "*.whl"))
	check.That(b.t, err == nil && len(found) == 1, "published: %v, %v", found, err)

	// Two cells never built before.
	said = b.executes(checkout, map[string]string{"cells": "steady --turn 1,2 --pace swift", "recipes": ".", "accept": "steady"})
	contains(b.t, said, "### builder: 1 cell passed", "| steady-1-swift | pass | build |", "| steady-2-swift | pass | build |")
}

// executes runs build.yml with act and the state of the story. It fails the test unless
// all jobs succeed, and returns the summary.
func (b *tool) executes(checkout string, inputs map[string]string) string {
	b.t.Helper()
	root := must.Get(filepath.Abs("../.."))(b.t)
	program := must.Get(acttest.Program())(b.t)
	inputs["home"] = b.home
	call := acttest.Call{
		Program: program, Workflow: filepath.Join(root, ".github", "workflows", "build.yml"), Checkout: checkout, Own: root,
		Dir: b.t.TempDir(), Env: hostEnv(), Inputs: inputs,
	}
	result, err := call.Play(b.t.Context())
	b.t.Log(result.Log)
	must.Succeed(b.t, err)
	check.That(b.t, !strings.Contains(result.String(), "failure"), "the jobs are\n%s", result)
	return result.Summary
}

// hostEnv returns the environment of a runner: that of this host without the variables
// of this tool.
func hostEnv() map[string]string {
	env := map[string]string{}
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "BUILDER_") {
			env[name] = value
		}
	}
	return env
}
