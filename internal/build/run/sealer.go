package run

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/verdict"
	"builder/internal/input/pypi"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
)

// sealer implements [Sealer] with the key of an invocation.
type sealer struct {
	key    signing.Key
	trust  signing.Trust // signers of earlier statements to keep with a result
	engine report.Engine
	tool   string // version of builder
}

var _ Sealer = sealer{}

// NewSealer returns a sealer that signs passing results with a key. It keeps the statements
// of trusted keys. tool is the version of builder.
func NewSealer(key signing.Key, trust signing.Trust, engine report.Engine, tool string) Sealer {
	return sealer{key, trust, engine, tool}
}

// Seal implements [Sealer]. If this key signed before that the same entry has the same
// bytes, the time of that build stays, because verdicts from before a build do not count.
// Seal then keeps the verdicts that trusted keys attached, but no round of its own whose
// gates this round asked.
func (s sealer) Seal(e lock.Entry, r Result, round []verdict.Verdict) ([]artifact.Artifact, error) {
	signer := attest.Sealer{Key: s.key}
	trust := signing.Trust{Keys: append(slices.Clone(s.trust.Keys), s.key.Public()), Now: time.Now()}
	var attached []attest.Document
	if len(r.Attestations) == 0 {
		p := attest.NewProvenance(e, attest.Build{
			Builder: s.builder(r, os.Getenv), Invocation: invocation(os.Getenv),
			Started: r.Started, Finished: r.Finished, Canary: r.Canary, Ccache: r.Ccache,
		})
		earlier, _ := attest.Read(r.Artifacts[0], trust)
		attached = earlier.Documents
		if earlier.Repeats(p, r.Artifacts, s.key.Public().ID) {
			p = *earlier.Provenance
		}
		if err := signer.Seal(r.Artifacts, p); err != nil {
			return nil, err
		}
	}
	result := attest.NewTestResult(round, e.Key(), s.tool, nil, time.Now())
	attached = slices.DeleteFunc(attached, func(a attest.Document) bool {
		return a.PredicateType != attest.TestResultType || a.Signer == s.key.Public().ID && len(verdict.Others(a.Verdicts, round)) == 0
	})
	if err := errors.Join(signer.AddRound(r.Artifacts[0], result), attest.Keep(r.Artifacts[0], attached)); err != nil {
		return nil, err
	}
	// Problems in the folder are not problems of the result: verify reports them.
	said, err := attest.Read(r.Artifacts[0], trust)
	if said.Provenance == nil {
		return nil, errors.Join(err, fmt.Errorf("the statements about %s do not verify", r.Artifacts[0].Name))
	}
	return said.Files(), nil
}

// builder identifies the builder: on GitHub Actions by the workflow reference, on any
// other host as local.
func (s sealer) builder(r Result, env func(string) string) attest.Builder {
	id := "urn:builder:local"
	if ref := env("GITHUB_WORKFLOW_REF"); ref != "" && env("GITHUB_ACTIONS") == "true" {
		id = env("GITHUB_SERVER_URL") + "/" + ref
	}
	versions := map[string]string{"builder": s.tool, s.engine.Kind: cmp.Or(s.engine.Version, "unknown")}
	if r.Ccache != "" {
		versions[attest.CompilerCache] = pypi.Ccache.Version
	}
	return attest.Builder{ID: id, Version: versions}
}

// invocation returns the URL of a workflow run, or "" elsewhere: no statement may
// contain the name of a host or a person.
func invocation(env func(string) string) string {
	if env("GITHUB_ACTIONS") != "true" {
		return ""
	}
	return fmt.Sprintf("%s/%s/actions/runs/%s/attempts/%s",
		env("GITHUB_SERVER_URL"), env("GITHUB_REPOSITORY"), env("GITHUB_RUN_ID"), cmp.Or(env("GITHUB_RUN_ATTEMPT"), "1"))
}
