package ci

import (
	"encoding/json"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
)

// GitHubJobs is the maximum number of jobs in one matrix of GitHub Actions.
const GitHubJobs = 256

// githubJob is an item of a GitHub Actions matrix. All values are strings.
type githubJob struct {
	ID       string `json:"id"`
	Recipe   string `json:"recipe"`
	Args     string `json:"args"`
	Artifact string `json:"artifact"`
}

// GitHub returns part of the jobs as a GitHub Actions matrix. It fails if part has more
// than [GitHubJobs] jobs.
func GitHub(jobs, part []Job) (any, error) {
	if len(part) > GitHubJobs {
		return nil, tooMany(jobs, part)
	}
	include := make([]githubJob, len(part))
	for i, j := range part {
		include[i] = githubJob{j.ID, j.Recipe, shell.Line(j.Flags...), j.Artifact()}
	}
	return map[string]any{"include": include}, nil
}

// tooMany returns an error with the number of shards needed.
func tooMany(jobs, part []Job) error {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	n := ShardsFor(ids, GitHubJobs)
	return diag.Errorf(diag.Usage, "%d jobs are more than GitHub's limit of %d for one matrix", len(part), GitHubJobs).
		WithHint("split all %d jobs into %d matrices with --shard 1/%d to --shard %d/%d, or use --condense", len(jobs), n, n, n, n)
}

// gitlabBase is the hidden job that all jobs extend. A site sets its image and runners
// by including a file with its own definition.
const gitlabBase = ".builder"

// gitlabJob is a job of a GitLab pipeline. Empty fields are inherited.
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

	Reports map[string]string `json:"reports,omitempty"` // files that GitLab shows, by kind
}

// GitLab returns jobs as a child pipeline, for encoding as JSON, which is also YAML.
// Each job writes its results to its own directory, because the last job receives all
// of them in one place and merges them. The last job names every cell, so the report has
// an error for the cell of a job without results.
func GitLab(jobs []Job) any {
	pipeline := map[string]any{
		"stages":   []string{"build", "report"},
		gitlabBase: gitlabJob{Stage: "build"},
	}
	var required []any
	merge := []string{"builder", "report", "merge"}
	for _, j := range jobs {
		dir := "out/" + j.Artifact()
		pipeline[j.Artifact()] = gitlabStep("build", "", append(append([]string{"builder", "run"}, j.Flags...), "--out", dir), dir)
		merge = append(merge, dir)
		required = append(required, map[string]any{"id": j.ID, "recipe": j.Recipe, "axes": j.Axes})
	}
	if len(jobs) > 0 {
		job := gitlabStep("report", "always", append(merge, "--matrix", "cells.json", "--out", "report"), "report")
		cells, _ := json.Marshal(required) // strings only
		job.Artifacts.Reports = map[string]string{"junit": "report/junit.xml"}
		job.Script = slices.Insert(job.Script, 0, shell.Line("echo", string(cells))+" > cells.json")
		pipeline["report"] = job
	}
	return pipeline
}

// gitlabStep returns a job that runs one command and keeps a directory, even if the
// command fails.
func gitlabStep(stage, when string, words []string, keep string) gitlabJob {
	return gitlabJob{
		Extends: gitlabBase, Stage: stage, When: when, Script: []string{shell.Line(words...)},
		Artifacts: &gitlabArtifacts{When: "always", Paths: []string{keep}},
	}
}
