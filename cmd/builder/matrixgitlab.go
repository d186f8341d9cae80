package main

import (
	"builder/internal/base/shell"
	"builder/internal/plan/ci"
)

// gitlabBase is the hidden job that all jobs extend: a site that includes a file
// with its own says there which image and which runners they have.
const gitlabBase = ".builder"

// gitlabJob is a job of a pipeline of GitLab. What is empty is inherited.
type gitlabJob struct {
	Extends   string           `json:"extends,omitempty"`
	Stage     string           `json:"stage"`
	When      string           `json:"when,omitempty"`
	Script    []string         `json:"script,omitempty"`
	Artifacts *gitlabArtifacts `json:"artifacts,omitempty"`
}

type gitlabArtifacts struct {
	When  string   `json:"when"`
	Paths []string `json:"paths"`
}

// printGitLab prints jobs as a child pipeline, in JSON, which is YAML too. Each
// job has a directory of its own for its results, since the last one, which
// merges them, finds them all in one place. It names them all: a job that left
// nothing behind is a fault.
func printGitLab(out printer, jobs []ci.Job) error {
	pipeline := map[string]any{
		"stages":   []string{"build", "report"},
		gitlabBase: gitlabJob{Stage: "build"},
	}
	merge := []string{"builder", "report", "merge"}
	for _, j := range jobs {
		dir := "out/" + j.Artifact()
		pipeline[j.Artifact()] = gitlabStep("build", "", append(append([]string{"builder", "run"}, j.Flags...), "--out", dir), dir)
		merge = append(merge, dir)
	}
	if len(jobs) == 0 {
		out.note("the part is empty, which GitLab refuses: trigger the pipeline only where there are jobs")
	} else {
		pipeline["report"] = gitlabStep("report", "always", append(merge, "--out", "report"), "report")
	}
	return printJSON(out, pipeline)
}

// gitlabStep is a job that runs one command and keeps a directory, whatever comes
// of it.
func gitlabStep(stage, when string, words []string, keep string) gitlabJob {
	return gitlabJob{
		Extends: gitlabBase, Stage: stage, When: when, Script: []string{shell.Line(words...)},
		Artifacts: &gitlabArtifacts{When: "always", Paths: []string{keep}},
	}
}
