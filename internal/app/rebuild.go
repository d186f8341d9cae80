package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"builder/internal/base/diag"
	"builder/internal/build/run"
	"builder/internal/evidence/attest"
	"builder/internal/files/artifact"
	"builder/internal/files/difference"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/lock"
)

// rebuildBundle builds the cell of a bundle again from its provenance and compares
// every file. Differing files stay in rebuilt/ beside the artifact.
func (s *Session) rebuildBundle(ctx context.Context, a artifact.Artifact, b attest.Bundle) (attest.Check, error) {
	e := b.Provenance.Definition.Internal.Entry
	if e.Pipeline != Revision() {
		return attest.Check{}, diag.Errorf(diag.Drift, "%s was built with other scripts than those of this builder: digest %s, here %s", a.Name, e.Pipeline, Revision()).
			WithHint("rebuild with the release that built it: %s", b.Provenance.Run.Builder.Version["builder"])
	}
	w, err := s.open(ctx)
	if err != nil {
		return attest.Check{}, err
	}
	defer w.close()
	inputs, err := w.builtInputs(e)
	if err != nil {
		return attest.Check{}, err
	}
	if err := w.ready(ctx, []lock.Entry{e}); err != nil {
		return attest.Check{}, err
	}
	dir := filepath.Join(filepath.Dir(a.Path), run.RebuiltDir)
	if err := os.RemoveAll(dir); err != nil {
		return attest.Check{}, err
	}
	events := NewWatch(dir, e.ID, s.Display)
	if err := run.Fetch(ctx, events, w.fetcher(), e); err != nil {
		return attest.Check{}, err
	}
	made, err := w.fleet().Rebuild(ctx, e, inputs, dir, events)
	if err != nil {
		return attest.Check{}, err
	}
	c, err := compareRebuilt(a, b, made)
	if err == nil && len(c.Wrong) == 0 {
		err = os.RemoveAll(dir)
	}
	return c, err
}

// attachRebuild signs the result of a second build as a round of the reproducibility
// gate.
func (s *Session) attachRebuild(a artifact.Artifact, b attest.Bundle, c attest.Check) error {
	key, err := s.SigningKey()
	if err != nil {
		return err
	}
	v := verdict.Verdict{Gate: gate.Reproducible.Name, Status: verdict.Pass, Evidence: c.Seen}
	if len(c.Wrong) > 0 {
		v.Status, v.Evidence = verdict.Fail, strings.Join(c.Wrong, "; ")
		v.Remedy = gate.Reproducible.Remedy
	}
	round := attest.NewTestResult([]verdict.Verdict{v}, b.Provenance.Definition.Internal.Key, s.Version, nil, time.Now())
	return attest.Sealer{Key: key}.AddRound(a, round)
}

// compareRebuilt requires every file named in the provenance, with its digest.
func compareRebuilt(a artifact.Artifact, b attest.Bundle, made []artifact.Artifact) (attest.Check, error) {
	c := attest.Check{Name: "rebuild", Seen: fmt.Sprintf("%d files are equal in a second build", len(b.Artifacts))}
	again := map[string]artifact.Artifact{}
	for _, m := range made {
		again[m.Name] = m
	}
	var errs []error
	for _, s := range b.Artifacts {
		m, ok := again[s.Name]
		if !ok {
			c.Wrong = append(c.Wrong, "the second build did not make "+s.Name)
			continue
		}
		if m.SHA256 == s.Digest["sha256"] {
			continue
		}
		c.Wrong = append(c.Wrong, fmt.Sprintf("%s has sha256 %s in the second build, but %s in the provenance; the second build is in %s/", s.Name, m.SHA256, s.Digest["sha256"], run.RebuiltDir))
		where, err := difference.Of(filepath.Join(filepath.Dir(a.Path), s.Name), m.Path)
		c.Wrong, errs = append(c.Wrong, where...), append(errs, err)
	}
	if len(c.Wrong) > 0 {
		c.Remedy = gate.Reproducible.Remedy
	}
	return c, errors.Join(errs...)
}
