package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"builder/internal/evidence/sbom"
	"builder/internal/files/artifact"
	"builder/internal/plan/lock"
	"builder/internal/plan/patch"
)

// VEXType is the predicate type of statements about published vulnerabilities
// (https://openvex.dev/ns/v0.2.0).
const VEXType = "https://openvex.dev/ns/v0.2.0"

// vexDocument is an OpenVEX document, with the field names of the specification
// (https://github.com/openvex/spec/blob/main/OPENVEX-SPEC.md).
type vexDocument struct {
	Context    string         `json:"@context"`
	ID         string         `json:"@id"`
	Author     string         `json:"author"`
	Timestamp  time.Time      `json:"timestamp"`
	Version    int            `json:"version"`
	Tooling    string         `json:"tooling"`
	Statements []vexStatement `json:"statements"`
}

type vexStatement struct {
	Vulnerability vulnerability `json:"vulnerability"`
	Products      []product     `json:"products"`
	Status        string        `json:"status"` // fixed or affected
	StatusNotes   string        `json:"status_notes,omitempty"`
	Action        string        `json:"action_statement,omitempty"`
}

type vulnerability struct {
	ID          string `json:"@id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

type product struct {
	ID     string            `json:"@id"`
	Hashes map[string]string `json:"hashes"`
}

// newVEX states for every advisory of an entry whether the patch that fixes it was
// applied. A patch without effect stops the build, so every patch in the entry is in
// the artifact.
func newVEX(a artifact.Artifact, e lock.Entry, finished time.Time) vexDocument {
	sum := sha256.Sum256([]byte(a.SHA256 + e.Key()))
	d := vexDocument{
		Context: VEXType, ID: "urn:builder:vex:" + hex.EncodeToString(sum[:]), Author: "builder",
		Timestamp: finished, Version: 1, Tooling: "builder", Statements: []vexStatement{},
	}
	about := product{sbom.ProductURL(e), map[string]string{"sha-256": a.SHA256}}
	for _, x := range e.Advisories {
		s := vexStatement{
			Vulnerability: vulnerability{x.Source, x.ID, x.About}, Products: []product{about},
			Status: "affected", Action: x.Action,
		}
		if slices.ContainsFunc(e.Patches, func(p patch.Patch) bool { return p.Name == x.MendedBy }) {
			s.Status, s.Action, s.StatusNotes = "fixed", "", "patch "+x.MendedBy
			if x.Remains != "" {
				s.StatusNotes += "; still open: " + x.Remains
			}
		}
		d.Statements = append(d.Statements, s)
	}
	return d
}

// sealVEX writes the document about an artifact, if its entry has advisories.
func (s Sealer) sealVEX(dir string, a artifact.Artifact, p Provenance) error {
	e := p.Definition.Internal.Entry
	if len(e.Advisories) == 0 {
		return nil
	}
	data, err := encode(newVEX(a, e, p.Run.Metadata.Finished))
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, plainVEX), data); err != nil {
		return err
	}
	return s.write(dir, vexFile, []artifact.Artifact{a}, VEXType, json.RawMessage(data))
}
