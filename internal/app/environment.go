package app

import (
	"context"
	"errors"

	"builder/internal/base/diag"
	"builder/internal/gates/environment"
	"builder/internal/gates/verdict"
)

// A JudgedEnvironment holds the verdicts on one environment.
type JudgedEnvironment struct {
	Path     string            `json:"path"`
	Python   string            `json:"python,omitempty"`
	Site     []string          `json:"site"`
	Verdicts []verdict.Verdict `json:"verdicts"`
}

// An EnvironmentReport holds the verdicts on all environments.
type EnvironmentReport struct {
	Schema       int                 `json:"schema"`
	Builder      string              `json:"builder"`
	Environments []JudgedEnvironment `json:"environments"`
}

// JudgeEnvironments runs the gates on environments. A refused environment does not stop
// the others. The report is empty if the work was interrupted.
func JudgeEnvironments(ctx context.Context, s *Session, paths, only []string, run bool) (EnvironmentReport, error) {
	report := EnvironmentReport{Schema: 1, Builder: s.Version, Environments: []JudgedEnvironment{}}
	var errs []error
	for _, path := range paths {
		e, err := environment.Open(ctx, path, environment.ThisHost())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		e.Run = run
		done := JudgedEnvironment{Path: path, Python: e.Python, Site: e.Site, Verdicts: e.Judge(ctx, only)}
		if ctx.Err() != nil {
			return EnvironmentReport{}, context.Cause(ctx)
		}
		report.Environments = append(report.Environments, done)
		errs = append(errs, refusedEnvironment(done))
	}
	return report, errors.Join(errs...)
}

// refusedEnvironment returns an error if a verdict refuses an environment or no gate
// applies to it.
func refusedEnvironment(e JudgedEnvironment) error {
	if len(e.Verdicts) == 0 {
		return diag.Errorf(diag.Gate, "%s: nothing to check: it has no NCCL, RCCL, NVSHMEM, libibverbs, CUDA or HIP run time, and no library that needs one", e.Path).
			WithHint("name the environment with the framework")
	}
	return verdict.Refusals(e.Path, e.Verdicts)
}
