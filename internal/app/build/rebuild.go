package build

import (
	"context"
	"path/filepath"

	"builder/internal/app/home"
	"builder/internal/app/host"
	"builder/internal/app/plan"
	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
)

// Rebuild builds the cell of a bundle again from its provenance and compares every file.
// Differing files stay in rebuilt/ beside the artifact.
func Rebuild(ctx context.Context, s Setup, a artifact.Artifact, b attest.Bundle) (verdict.Verdict, error) {
	e := b.Provenance.Definition.Internal.Entry
	if e.Pipeline != plan.Revision() {
		return verdict.Verdict{}, diag.Errorf(diag.Drift, "%s was built with other scripts than those of this builder: digest %s, here %s", a.Name, e.Pipeline, plan.Revision()).
			WithHint("rebuild with the release that built it: %s", b.Provenance.Run.Builder.Version["builder"])
	}
	w, err := home.Open(ctx, s.Keys, s.NoInstall)
	if err != nil {
		return verdict.Verdict{}, err
	}
	defer w.Close()
	inputs, err := builtInputs(w, e)
	if err == nil {
		err = host.Preflight(ctx, s.Setup, []lock.Entry{e})
	}
	if err != nil {
		return verdict.Verdict{}, err
	}
	dir := filepath.Dir(a.Path)
	var signed []artifact.Artifact // all lie beside the artifact
	for _, f := range b.Artifacts {
		signed = append(signed, artifact.Artifact{Name: f.Name, SHA256: f.Digest["sha256"], Path: filepath.Join(dir, f.Name)})
	}
	job := run.Job{Entry: e, Inputs: inputs, Dir: filepath.Join(dir, run.RebuiltDir)}
	return run.BuildAgain(ctx, s.Sources.Fetcher(w), host.Retrying(s.Setup, w), job, signed, run.Watch(job.Dir, s.Display)(e.ID))
}
