package attest

import (
	"errors"
	"fmt"

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
		c.GPUs = c.GPUs || r.Host != nil && len(r.Host.GPUs) > 0 && r.Result != "FAILED"
		c.Day = max(c.Day, r.Finished.UTC().Format("2006-01-02"))
	}
	if c.Gates == 0 {
		return c, fmt.Errorf("recording the proof: no gate passed for %s", definition.External.Cell)
	}
	return c, nil
}
