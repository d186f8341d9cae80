package attest

import (
	"errors"
	"fmt"
	"slices"

	"builder/internal/base/shell"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/plan/proven"
)

// Proof returns the evidence in the verified statements about an artifact with a digest.
func (b Bundle) Proof(sha256 string) (proven.Proof, error) {
	if b.Provenance == nil {
		return proven.Proof{}, errors.New("recording the proof: the artifact has no provenance")
	}
	definition := b.Provenance.Definition
	c := proven.Proof{Recipe: definition.External.Recipe, Key: definition.Internal.Key, Wheel: sha256, Tests: proven.None}
	// A host with GPUs lacks what the other gates need, so a whole round there says nothing
	// about the GPUs.
	onGPUs := slices.DeleteFunc(b.Verdicts(), func(v verdict.Verdict) bool { return !gate.UsesGPUs(v) })
	c.GPUs = len(onGPUs) > 0 && !slices.ContainsFunc(onGPUs, func(v verdict.Verdict) bool { return v.Status != verdict.Pass })
	for _, v := range b.Verdicts() {
		if v.Status != verdict.Pass && v.Status != verdict.Waived {
			continue
		}
		c.Gates++
		switch passed := v.Status == verdict.Pass; {
		case passed && v.Gate == "upstream-tests" && c.Tests == proven.None:
			c.Tests = proven.Quick
		case passed && v.Gate == "upstream-tests-full":
			c.Tests = proven.Full
		}
		c.Rebuilt = c.Rebuilt || v.Gate == "reproducible"
	}
	for _, r := range b.Counted() {
		c.Day = max(c.Day, r.Finished.UTC().Format("2006-01-02"))
	}
	if c.Gates == 0 {
		return c, fmt.Errorf("recording the proof: no gate passed for %s", definition.External.Cell)
	}
	return c, nil
}

// NotAsked names what no passed verdict says of the artifact of a bundle with provenance,
// each with the command that asks. run is the command that builds its cell.
func (b Bundle) NotAsked(a artifact.Artifact, run string) (missing []string) {
	proof, _ := b.Proof(a.SHA256) // without a passed verdict, nothing was asked
	e, at := b.Provenance.Definition.Internal.Entry.Expect, shell.Word(a.Path)
	if len(e.Tests.Files) > 0 && proof.Tests != proven.Full {
		missing = append(missing, "all of upstream's tests: "+run+" --tests full")
	}
	if !proof.Rebuilt {
		missing = append(missing, "a second build: builder verify "+at+" --rebuild --attach")
	}
	if !proof.GPUs && len(e.DeviceCode) > 0 {
		missing = append(missing, "GPUs: builder gate "+at+" --gpus all --attach")
	}
	return missing
}
