package judge

import (
	"context"

	"builder/internal/base/diag"
	"builder/internal/files/artifact"
	"builder/internal/gates/environment"
	"builder/internal/gates/verdict"
)

// JudgeEnvironment runs the gates on an environment. The report is empty if its
// interpreter gave no answer.
func JudgeEnvironment(ctx context.Context, version, path string) (GateReport, error) {
	e, err := environment.Ask(ctx, path)
	if err != nil {
		return GateReport{}, err
	}
	done := Gated{Artifact: artifact.Artifact{Name: path, Path: path}, Verdicts: e.Judge()}
	err = verdict.Refusals(path, done.Verdicts)
	if len(done.Verdicts) == 0 {
		err = diag.Errorf(diag.Gate, "%s: nothing to check: it has no NCCL, RCCL, NVSHMEM, CUDA or HIP run time, and no library that needs one", path).
			WithHint("name the environment with the framework")
	}
	return GateReport{Schema: gateSchema, Builder: version, Artifacts: []Gated{done}}, err
}
