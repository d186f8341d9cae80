package main

import (
	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/plan/ci"
	"builder/internal/view/term"
)

// githubJobs is how many jobs GitHub Actions takes for one matrix.
const githubJobs = 256

// githubJob is an item of a matrix as GitHub Actions takes it: texts only.
type githubJob struct {
	ID       string `json:"id"`
	Recipe   string `json:"recipe"`
	Args     string `json:"args"`
	Artifact string `json:"artifact"`
}

// printGitHub prints part of the jobs as a matrix on one line.
func printGitHub(out printer, jobs, part []ci.Job) error {
	if len(part) > githubJobs {
		return tooMany(jobs, part)
	}
	if len(part) == 0 {
		out.note("the part is empty, which GitHub refuses: let the job begin with `if: fromJSON(…).include[0]`")
	}
	include := make([]githubJob, len(part))
	for i, j := range part {
		include[i] = githubJob{j.ID, j.Recipe, shell.Line(j.Flags...), j.Artifact()}
	}
	return term.JSON(out.stdout, map[string]any{"include": include}, "")
}

// tooMany says how many shards would do.
func tooMany(jobs, part []ci.Job) error {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	n := ci.ShardsFor(ids, githubJobs)
	return diag.Errorf(diag.Usage, "%d jobs are more than the %d that GitHub takes for one matrix", len(part), githubJobs).
		WithHint("deal all %d out to %d matrices, --shard 1/%d to --shard %d/%d, or say --condense", len(jobs), n, n, n, n)
}
