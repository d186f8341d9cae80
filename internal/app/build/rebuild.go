package build

import (
	"context"
	"os"
	"path/filepath"

	"builder/internal/app/home"
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
	w, err := s.Open(ctx)
	if err != nil {
		return verdict.Verdict{}, err
	}
	defer w.Close()
	dir := filepath.Join(filepath.Dir(a.Path), run.RebuiltDir)
	made, err := s.rebuild(ctx, w, e, dir)
	if err != nil {
		return verdict.Verdict{}, err
	}
	v := run.Compare(signedFiles(a, b), made)
	if !v.Refuses() {
		err = os.RemoveAll(dir)
	}
	return v, err
}

// rebuild builds an entry into dir, even if the engine has it cached.
func (s Setup) rebuild(ctx context.Context, w *home.Workspace, e lock.Entry, dir string) ([]artifact.Artifact, error) {
	inputs, err := builtInputs(w, e)
	if err == nil {
		err = s.preflight(ctx, []lock.Entry{e})
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	events := NewWatch(dir, e.ID, s.Display)
	if err == nil {
		err = run.Fetch(ctx, events, s.Sources.Fetcher(w), e)
	}
	if err != nil {
		return nil, err
	}
	return s.fleet(w).Rebuild(ctx, e, inputs, dir, events)
}

// signedFiles returns the files named in the provenance of an artifact, which are beside
// it.
func signedFiles(a artifact.Artifact, b attest.Bundle) (files []artifact.Artifact) {
	for _, s := range b.Artifacts {
		files = append(files, artifact.Artifact{Name: s.Name, SHA256: s.Digest["sha256"], Path: filepath.Join(filepath.Dir(a.Path), s.Name)})
	}
	return files
}
