package ci

import (
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

// tooMany returns an error with a number of shards that suffices for ids of any kind: 200
// jobs on average are less than the limit in every shard.
func tooMany(jobs, part []Job) error {
	n := len(jobs)/200 + 1
	return diag.Errorf(diag.Usage, "%d jobs are more than GitHub's limit of %d for one matrix", len(part), GitHubJobs).
		WithHint("split all %d jobs into %d matrices with --shard 1/%d to --shard %d/%d, or use --condense", len(jobs), n, n, n, n)
}
