// Package attest says how an artifact was made and what was found about it, in
// in-toto statements that are bound to the sha256 of its bytes and signed.
//
// The folder [Dir] beside an artifact holds one Sigstore bundle for each
// statement: the provenance (SLSA v1), the SBOM (SPDX 2.3), the VEX document
// (OpenVEX) and one test result for each time that gates were asked. Device gates
// run on another host and another day than the build, so what they found has to
// travel with these bytes and with no others. Nothing that is read here counts
// before [builder/internal/evidence/signing] found its signature right.
package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"builder/internal/files/artifact"
)

// Dir returns the folder of the statements about the artifact at path.
func Dir(path string) string { return path + ".attestations" }

// suffix ends the name of every signed statement.
const suffix = ".sigstore.json"

// statementType is that of every statement (in-toto attestation framework, v1).
const statementType = "https://in-toto.io/Statement/v1"

// A Statement is what is said about some bytes; what its predicate holds follows
// from its type.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// A Subject is the bytes that a statement speaks of, and the name under which they
// are what it says: a wheel says by its name what it is for.
type Subject struct {
	Name        string            `json:"name"`
	Digest      map[string]string `json:"digest"`
	Annotations *Annotations      `json:"annotations,omitempty"`
}

// Annotations are what a subject has beside its name and its digest.
type Annotations struct {
	Size int64 `json:"size"` // bytes
}

// Size returns the bytes of the subject, 0 where the statement does not say: those
// before 2026-11-22 do not.
func (s Subject) Size() int64 {
	if s.Annotations == nil {
		return 0
	}
	return s.Annotations.Size
}

func subjects(artifacts []artifact.Artifact) []Subject {
	all := make([]Subject, len(artifacts))
	for i, a := range artifacts {
		all[i] = Subject{a.Name, map[string]string{"sha256": a.SHA256}, &Annotations{a.Size}}
	}
	return all
}

// fault says why the statement is not about an artifact, "" where it is.
func (s Statement) fault(a artifact.Artifact) string {
	var names []string
	for _, x := range s.Subject {
		if x.Digest["sha256"] == a.SHA256 {
			names = append(names, x.Name)
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Sprintf("it speaks of other bytes: %s; the file beside it has sha256 %s", s.about(), a.SHA256)
	case !slices.Contains(names, a.Name):
		return fmt.Sprintf("it speaks of %s, and the file beside it is called %s: give the file its name back", strings.Join(names, " and "), a.Name)
	}
	return ""
}

// about lists what the statement speaks of.
func (s Statement) about() string {
	var all []string
	for _, x := range s.Subject {
		all = append(all, fmt.Sprintf("%s with sha256 %s", x.Name, x.Digest["sha256"]))
	}
	return strings.Join(all, ", ")
}

// newStatement makes a statement of any predicate that is JSON.
func newStatement(about []artifact.Artifact, predicateType string, predicate any) (Statement, error) {
	data, err := encode(predicate)
	if err != nil {
		return Statement{}, fmt.Errorf("encoding the statement %s: %w", predicateType, err)
	}
	return Statement{statementType, subjects(about), predicateType, data}, nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// decode reads one JSON value and nothing behind it. Fields that this version
// does not know are passed over, as in-toto wants it.
func decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}
