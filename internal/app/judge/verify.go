package judge

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"builder/internal/app/build"
	"builder/internal/app/home"
	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/proven"
	"builder/internal/publishing/publish"
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

	From     []string // places with the statements; empty takes those beside each path
	Insecure bool     // use plain HTTP for other hosts too
}

// Verify checks every artifact. A refused artifact does not stop the others. The report
// is empty if a rebuild could not be done.
func Verify(ctx context.Context, s build.Setup, r VerifyRequest) (VerifyReport, error) {
	artifacts, err := artifactsOf(slices.DeleteFunc(slices.Clone(r.Paths), publish.InRegistry))
	if err != nil {
		return VerifyReport{}, err
	}
	trust, err := s.Keys.Trusted()
	if err != nil {
		return VerifyReport{}, err
	}
	scratch, err := os.MkdirTemp("", "builder-verify-*")
	if err != nil {
		return VerifyReport{}, err
	}
	defer os.RemoveAll(scratch)
	all, errs, err := findAll(ctx, s.Keys.Home, r, trust, artifacts, scratch)
	if err != nil {
		return VerifyReport{}, err
	}
	report := VerifyReport{Schema: 1, Policy: r.Policy, Artifacts: []Verified{}}
	cells := proven.Cells{}
	for _, f := range all {
		a := f.Artifact
		bundle, checks := attest.VerifyBy(f.statements, a, trust, r.Policy)
		others := slices.DeleteFunc(slices.Clone(checks), func(c attest.Check) bool { return c.Name == attest.CacheCheck })
		if r.Rebuild && attest.Passed(others) {
			again, err := build.Rebuild(ctx, s, a, bundle)
			if err == nil && r.Attach {
				err = attachVerdict(s, a, bundle, again)
			}
			if err != nil {
				return VerifyReport{}, err
			}
			if r.Attach {
				bundle, _ = attest.Verify(a, trust, r.Policy) // with the new statement
			}
			check := attest.Check{Name: "rebuild", Seen: again.Evidence}
			if again.Refuses() {
				check = attest.Check{Name: "rebuild", Wrong: []string{again.Evidence}, Remedy: again.Remedy}
			}
			checks = append(others, check) // the second build answers what was left out
		}
		v := Verified{Artifact: f.shown, Checks: checks}
		if p := bundle.Provenance; p != nil {
			v.Cell, v.Key = p.Definition.External.Cell, p.Definition.Internal.Key
		}
		if r.Record != "" && attest.Passed(checks) {
			proof, err := bundle.Proof(a.SHA256)
			if err == nil {
				cells[v.Cell] = proof
			}
			errs = append(errs, err)
		}
		report.Artifacts, errs = append(report.Artifacts, v), append(errs, attest.Faults(v.Name, v.Checks))
	}
	if len(cells) > 0 {
		errs = append(errs, proven.Record(r.Record, cells))
	}
	return report, errors.Join(errs...)
}

// A found is an artifact, and the folder of its statements.
type found struct {
	artifact.Artifact
	statements string
	shown      artifact.Artifact // as the user knows it
}

// foundAt returns an artifact that has its statements beside it. at is its path as the
// user knows it.
func foundAt(a artifact.Artifact, at string) found {
	f := found{Artifact: a, statements: attest.Dir(a.Path), shown: a}
	f.shown.Path = at
	return f
}

// findAll returns the artifacts of a request with their statements, and the errors of
// those that were not found. It fetches below scratch.
func findAll(ctx context.Context, dir string, r VerifyRequest, trust signing.Trust, artifacts []artifact.Artifact, scratch string) (all []found, errs []error, err error) {
	var statements publish.Statements
	if len(r.From) > 0 {
		kept, err := store.Open(home.StoreDir(dir))
		if err != nil {
			return nil, nil, err
		}
		if statements, err = publish.OpenStatements(ctx, r.From, kept, scratch); err != nil {
			return nil, nil, err
		}
	}
	for _, a := range artifacts {
		f := foundAt(a, a.Path)
		if len(r.From) > 0 {
			if f.statements, err = statements.Of(ctx, a); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		all = append(all, f)
	}
	for _, name := range r.Paths {
		if !publish.InRegistry(name) {
			continue
		}
		from, path, err := pullBelow(ctx, name, r.Insecure, scratch, trust, "") // its verdicts are not checked yet
		a := artifact.Artifact{}
		if err == nil {
			a, err = artifact.Of(path, "")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, foundAt(a, from.String()))
	}
	return all, errs, context.Cause(ctx)
}

// artifactsOf hashes the wheels of every path and returns all errors.
func artifactsOf(paths []string) ([]artifact.Artifact, error) {
	files, err := subject.Passed(paths)
	var artifacts []artifact.Artifact
	errs := []error{err}
	for _, file := range files {
		a, err := artifact.Of(file, "")
		if err != nil {
			errs = append(errs, diag.Errorf(diag.Usage, "%w", err).WithHint("name a regular file that your user can read"))
			continue
		}
		artifacts = append(artifacts, a)
	}
	return artifacts, errors.Join(errs...)
}

// attachVerdict signs a verdict as a round of gates of its own.
func attachVerdict(s build.Setup, a artifact.Artifact, b attest.Bundle, v verdict.Verdict) error {
	key, err := s.Keys.Signing()
	if err != nil {
		return err
	}
	round := attest.NewTestResult([]verdict.Verdict{v}, b.Provenance.Definition.Internal.Key, s.Version, nil, time.Now())
	return attest.Sealer{Key: key}.AddRound(a, round)
}
