package app

import (
	"context"
	"errors"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/proven"
	"builder/internal/files/artifact"
	"builder/internal/publishing/subject"
)

// Verified is what came of one artifact.
type Verified struct {
	artifact.Artifact
	Cell   string         `json:"cell,omitempty"`
	Key    string         `json:"key,omitempty"`
	Checks []attest.Check `json:"checks"`
}

// A VerifyReport is what came of all artifacts.
type VerifyReport struct {
	Schema    int           `json:"schema"`
	Policy    attest.Policy `json:"policy"`
	Artifacts []Verified    `json:"artifacts"`
}

// A VerifyRequest says what is to be verified.
type VerifyRequest struct {
	Paths   []string
	Policy  attest.Policy
	Rebuild bool   // build each cell once more and compare
	Attach  bool   // sign what that found
	Record  string // file that notes the cells that passed; "" is none
}

// Verifiable measures the artifacts below paths, and demands a key to trust.
func Verifiable(s *Session, paths []string) ([]artifact.Artifact, error) {
	artifacts, err := artifactsOf(paths)
	if err != nil {
		return nil, err
	}
	trust, err := s.Trusted()
	if err != nil {
		return nil, err
	}
	if len(trust.Keys) == 0 {
		return nil, diag.Errorf(diag.Usage, "no key is trusted: this host has made none").
			WithHint("--trust FILE names the public key of who built it; `builder key show` prints it there; `builder gate FILE` says what a wheel of somebody else is")
	}
	return artifacts, nil
}

// Verify asks about every artifact; one that is refused takes none of the others with
// it. The report is empty where a rebuild could not be done.
func Verify(ctx context.Context, s *Session, r VerifyRequest, artifacts []artifact.Artifact) (VerifyReport, error) {
	trust, err := s.Trusted()
	if err != nil {
		return VerifyReport{}, err
	}
	report := VerifyReport{Schema: 1, Policy: r.Policy}
	cells := proven.Cells{}
	var faults []error
	for _, a := range artifacts {
		bundle, checks := attest.Verify(a, trust, r.Policy)
		if r.Rebuild && attest.Passed(checks) {
			again, err := s.rebuildBundle(ctx, a, bundle)
			if err == nil && r.Attach {
				err = s.attachRebuild(a, bundle, again)
			}
			if err != nil {
				return VerifyReport{}, err
			}
			checks = append(checks, again)
		}
		v := Verified{Artifact: a, Checks: checks}
		if p := bundle.Provenance; p != nil {
			v.Cell, v.Key = p.Definition.External.Cell, p.Definition.Internal.Key
		}
		if r.Record != "" && attest.Passed(checks) {
			faults = append(faults, cells.Add(bundle, a.SHA256))
		}
		report.Artifacts, faults = append(report.Artifacts, v), append(faults, attest.Faults(v.Name, v.Checks))
	}
	if len(cells) > 0 {
		faults = append(faults, proven.Record(r.Record, cells))
	}
	return report, errors.Join(faults...)
}

// artifactsOf measures the wheels of every path, and tells all that is wrong with
// any.
func artifactsOf(paths []string) ([]artifact.Artifact, error) {
	files, err := subject.Passed(paths)
	var artifacts []artifact.Artifact
	faults := []error{err}
	for _, file := range files {
		a, err := artifact.Of(file, "")
		artifacts, faults = append(artifacts, a), append(faults, err)
	}
	return artifacts, errors.Join(faults...)
}
