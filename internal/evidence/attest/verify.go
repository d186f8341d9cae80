package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/evidence/sbom"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/files/wheel"
	"builder/internal/plan/lock"
)

// A Check is one check of an artifact with its result: the evidence, or the problems
// and their remedy.
type Check struct {
	Name   string   `json:"check"`
	Seen   string   `json:"seen,omitempty"`
	Wrong  []string `json:"wrong,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
}

// Remedies for statements that fail verification.
const (
	foreign  = "copy this folder too, or run `builder verify FILE --from PLACE` with the place where it is published; to examine a wheel of another project, run `builder gate FILE`"
	stranger = "to trust the signatures of another host, run `builder key show` there and give its public key with --trust FILE; for a build signed with --key FILE, give --trust FILE.pub; compare the ids: `builder key show FILE.pub`"
	early    = "set the clock of this host right; if it is right, remove the file, and run its gates again on a host whose clock is right"
	changed  = "copy the directory of the cell again from the host that built it, or build the cell again with `builder run`; in an index, publish the cell again"
)

// Faults returns the problems of all checks as errors about the artifact with the given
// name.
func Faults(name string, checks []Check) error {
	var errs []error
	for _, c := range checks {
		for _, wrong := range c.Wrong {
			errs = append(errs, diag.Errorf(diag.Gate, "%s: %s: %s", name, c.Name, wrong).WithHint("%s", c.Remedy))
		}
	}
	return errors.Join(errs...)
}

// Passed reports whether no check found a problem.
func Passed(checks []Check) bool {
	return len(checks) > 0 && !slices.ContainsFunc(checks, func(c Check) bool { return len(c.Wrong) > 0 })
}

// Verify verifies the statements beside an artifact. They must be signed by trusted
// keys, name these bytes under this name, agree with each other, and show every gate
// required by the policy as passed. The folder must hold no unsigned file. The bundle
// holds the readable statements.
func Verify(a artifact.Artifact, trust signing.Trust, policy Policy) (Bundle, []Check) {
	return VerifyBy(Dir(a.Path), a, trust, policy)
}

// VerifyBy is [Verify] with the statements in another folder.
func VerifyBy(folder string, a artifact.Artifact, trust signing.Trust, policy Policy) (Bundle, []Check) {
	said, err := list(folder)
	if errors.Is(err, fs.ErrNotExist) {
		remedy := foreign
		if filepath.Base(filepath.Dir(a.Path)) == artifact.RejectedDir {
			remedy = "gates refused this artifact, so nothing is signed: read report.html in the directory of its run"
		}
		return Bundle{}, []Check{{Name: "signatures", Wrong: []string{Dir(a.Path) + " is missing, so the artifact has no statements"}, Remedy: remedy}}
	}
	var b Bundle
	if err == nil {
		b, err = readSaid(a, said, trust)
	}
	checks := b.origin(a, err)
	if b.nothingCounts() {
		return b, settled(checks)
	}
	artifacts, beside := checkArtifacts(a, b.Provenance, b.Artifacts)
	b.Beside, checks = beside, append(checks, artifacts)
	checks = append(checks, checkSBOM(a, b.Provenance, b.SBOM, err))
	return b, settled(append(checks, b.checkGates(policy, trust.Now, err)...))
}

// settled removes the remedy of checks without a problem.
func settled(checks []Check) []Check {
	for i, c := range checks {
		if len(c.Wrong) == 0 {
			checks[i].Remedy = ""
		}
	}
	return checks
}

// VerifyStatements makes the checks of [Verify] that do not need the artifact itself,
// for an artifact not yet fetched or known only by its digest. said lists the files of
// its folder. Without a policy the verdicts are not checked: a gate can judge an artifact
// again that it refused before.
func VerifyStatements(a artifact.Artifact, said []artifact.Artifact, trust signing.Trust, policy Policy) (Bundle, []Check) {
	b, err := readSaid(a, said, trust)
	checks := b.origin(a, err)
	if policy != "" {
		checks = append(checks, b.checkGates(policy, trust.Now, err)...)
	}
	return b, settled(checks)
}

// origin checks who made the statements, and the provenance if any of them counts. err is
// the error of reading them.
func (b Bundle) origin(a artifact.Artifact, err error) []Check {
	checks := []Check{b.checkSignatures(a, err)}
	if !b.nothingCounts() {
		checks = append(checks, checkProvenance(b.Provenance, err))
	}
	return checks
}

func (b Bundle) checkSignatures(a artifact.Artifact, err error) Check {
	c := Check{Name: "signatures", Seen: fmt.Sprintf("%d statements, signed by %s", len(b.Documents), strings.Join(b.Keys, ", "))}
	if err != nil {
		for _, e := range diag.Split(err) {
			if !b.unknown() || errors.Is(e, signing.ErrStranger) {
				c.Wrong = append(c.Wrong, e.Error())
			}
		}
	}
	c.Remedy = Remedy(err)
	if len(b.Documents) == 0 && err == nil {
		c.Wrong, c.Remedy = []string{Dir(a.Path) + " holds no statement"}, foreign
	}
	return c
}

// unknown reports whether keys that are not trusted signed all statements.
func (b Bundle) unknown() bool { return len(b.Documents) == 0 && b.strangers > 0 }

// nothingCounts reports whether the statements are of strangers, or about another
// artifact. Then only that is worth saying.
func (b Bundle) nothingCounts() bool { return b.unknown() || b.others > 0 && b.Provenance == nil }

// Remedy returns the remedy for an error of [Read].
func Remedy(err error) string {
	switch {
	case errors.Is(err, signing.ErrStranger):
		return stranger
	case errors.Is(err, errFuture):
		return early
	}
	return changed
}

func checkProvenance(p *Provenance, err error) Check {
	c := Check{Name: "provenance"}
	if p == nil {
		c.Wrong, c.Remedy = []string{"no trusted key signed a provenance of this artifact"}, Remedy(err)
		return c
	}
	if problem := p.problem(); problem != "" {
		c.Wrong, c.Remedy = []string{problem}, changed
	}
	d := p.Definition
	c.Seen = fmt.Sprintf("cell %s, key %s, %d materials, built by %s", d.External.Cell, d.Internal.Key, len(d.Materials), p.Run.Builder.ID)
	return c
}

// checkArtifacts compares the entry and the other files of the cell with the
// provenance, if they exist beside the artifact. It returns the matching files.
func checkArtifacts(a artifact.Artifact, p *Provenance, signed []Subject) (c Check, beside []artifact.Artifact) {
	c.Name, c.Remedy = "artifacts", changed
	if p == nil {
		c.Seen = "not compared: no provenance is trusted"
		return c, nil
	}
	dir := filepath.Dir(a.Path)
	var seen []string
	for _, s := range signed {
		if s.Digest["sha256"] == a.SHA256 && s.Name == a.Name {
			seen = append(seen, a.Name)
			continue
		}
		if !PlainName(s.Name) {
			c.Wrong = append(c.Wrong, fmt.Sprintf("%q is not a file name", s.Name))
			continue
		}
		other, err := artifact.Unlinked(filepath.Join(dir, s.Name), "")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			seen = append(seen, s.Name+" is absent")
		case err != nil:
			c.Wrong = append(c.Wrong, err.Error())
		case other.SHA256 != s.Digest["sha256"]:
			c.Wrong = append(c.Wrong, fmt.Sprintf("%s has sha256 %s, the provenance states %s", s.Name, other.SHA256, s.Digest["sha256"]))
		default:
			seen, beside = append(seen, s.Name), append(beside, other)
		}
	}
	c.Seen = strings.Join(seen, ", ")
	c.Wrong = append(c.Wrong, checkEntry(dir, p.Definition.Internal.Key)...)
	return c, beside
}

// PlainName reports whether a name is a plain file name.
func PlainName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

// checkEntry compares the entry in an artifact's directory, if there is one, with the key.
func checkEntry(dir, key string) (wrong []string) {
	switch e, err := artifact.Unlinked(filepath.Join(dir, lock.EntryFile), ""); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		wrong = append(wrong, err.Error())
	case e.SHA256 != key:
		wrong = append(wrong, fmt.Sprintf("%s has sha256 %s, the provenance states %s", lock.EntryFile, e.SHA256, key))
	}
	return wrong
}

// checkSBOM compares the document in the wheel with the signed one. An archive contains
// no document. For an archive, the signature binds the document to its bytes.
func checkSBOM(a artifact.Artifact, p *Provenance, signed json.RawMessage, err error) Check {
	c := Check{Name: "sbom", Remedy: changed}
	if signed == nil {
		c.Wrong, c.Remedy = []string{"no trusted key signed an SBOM of this artifact"}, Remedy(err)
		return c
	}
	if p != nil && p.Definition.Internal.Entry.Expect.Tree != "" {
		c.Seen = fmt.Sprintf("SPDX of %d bytes, signed for this archive", len(signed))
		return c
	}
	inside, err := sbomIn(a.Path)
	switch {
	case err != nil:
		c.Wrong = []string{err.Error()}
	case !equalJSON(inside, signed):
		c.Wrong = []string{"the SBOM in the wheel differs from the signed SBOM"}
	}
	c.Seen = fmt.Sprintf("SPDX of %d bytes, equal to the SBOM in the wheel", len(inside))
	return c
}

func sbomIn(path string) ([]byte, error) {
	w, err := wheel.Open(path)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.ReadFile(w.DistInfo+"/"+sbom.Member, maxStatement)
}

// equalJSON compares two JSON documents, ignoring white space.
func equalJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
