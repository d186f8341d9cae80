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

// Verified holds the checks of one artifact.
type Verified struct {
	artifact.Artifact
	Cell   string         `json:"cell,omitempty"`
	Key    string         `json:"key,omitempty"`
	Checks []attest.Check `json:"checks"`
}

// A VerifyReport holds the checks of all artifacts.
type VerifyReport struct {
	Schema    int           `json:"schema"`
	Policy    attest.Policy `json:"policy"`
	Artifacts []Verified    `json:"artifacts"`
}

// A VerifyRequest names the artifacts to verify and how to verify them.
type VerifyRequest struct {
	Paths   []string
	Policy  attest.Policy
	Rebuild bool   // build each cell again and compare
	Attach  bool   // sign the result of the rebuild
	Record  string // file to record passing cells in; "" is none
}

// Verifiable hashes the artifacts below paths. It returns an error if no key is
// trusted.
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
		return nil, diag.Errorf(diag.Usage, "no trusted key: this host has no key of its own").
			WithHint("give the public key of the building host with --trust FILE (`builder key show` prints it there, and `run --key FILE` signs for FILE.pub), or inspect the wheel with `builder gate FILE`")
	}
	return artifacts, nil
}

// Verify checks every artifact. A refused artifact does not stop the others. The report
// is empty if a rebuild could not be done.
func Verify(ctx context.Context, s *Session, r VerifyRequest, artifacts []artifact.Artifact) (VerifyReport, error) {
	trust, err := s.Trusted()
	if err != nil {
		return VerifyReport{}, err
	}
	if err := trust.ReadLogs(ctx); err != nil {
		return VerifyReport{}, err
	}
	report := VerifyReport{Schema: 1, Policy: r.Policy}
	cells := proven.Cells{}
	var errs []error
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
			errs = append(errs, cells.Add(bundle, a.SHA256))
		}
		report.Artifacts, errs = append(report.Artifacts, v), append(errs, attest.Faults(v.Name, v.Checks))
	}
	if len(cells) > 0 {
		errs = append(errs, proven.Record(r.Record, cells))
	}
	return report, errors.Join(errs...)
}

// artifactsOf hashes the wheels of every path and returns all errors.
func artifactsOf(paths []string) ([]artifact.Artifact, error) {
	files, err := subject.Passed(paths)
	var artifacts []artifact.Artifact
	errs := []error{err}
	for _, file := range files {
		a, err := artifact.Of(file, "")
		artifacts, errs = append(artifacts, a), append(errs, err)
	}
	return artifacts, errors.Join(errs...)
}
