// Package attest writes and verifies statements about artifacts: how an artifact was
// built, and the results of its gates. They are signed in-toto statements, bound to the
// sha256 of the artifact.
//
// The folder [Dir] beside an artifact holds one Sigstore bundle per statement: the
// provenance (SLSA v1), the SBOM (SPDX 2.3) and one test result per round of gates. Device
// gates run on another host and another day than the build, so their results must stay
// bound to exactly these bytes. No statement counts until
// [builder/internal/evidence/signing] has verified its signature.
package attest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/files/artifact"
)

// Dir returns the folder of the statements about the artifact at path.
func Dir(path string) string { return path + ".attestations" }

// suffix is the end of the file name of every signed statement.
const suffix = ".sigstore.json"

// statementType is the type of every statement (in-toto attestation framework, v1).
const statementType = "https://in-toto.io/Statement/v1"

// A Statement makes a claim about its subjects. PredicateType determines the contents
// of Predicate.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// A Subject identifies an artifact by digest and file name. The name counts too,
// because the name of a wheel states its platform.
type Subject struct {
	Name        string            `json:"name"`
	Digest      map[string]string `json:"digest"`
	Annotations Annotations       `json:"annotations"`
}

// Annotations hold the size of a subject.
type Annotations struct {
	Size int64 `json:"size"` // bytes
}

func subjects(artifacts []artifact.Artifact) []Subject {
	all := make([]Subject, len(artifacts))
	for i, a := range artifacts {
		all[i] = Subject{a.Name, map[string]string{"sha256": a.SHA256}, Annotations{a.Size}}
	}
	return all
}

// problem returns the reason why the statement does not apply to an artifact, or "".
func (s Statement) problem(a artifact.Artifact) string {
	var names []string
	for _, x := range s.Subject {
		if x.Digest["sha256"] == a.SHA256 {
			names = append(names, x.Name)
		}
	}
	switch {
	case len(names) == 0:
		return fmt.Sprintf("the statement is about other bytes: %s; the artifact has sha256 %s", s.about(a.Name), a.SHA256)
	case !slices.Contains(names, a.Name):
		return fmt.Sprintf("the statement is about %s, the artifact is named %s: restore the name of the artifact", strings.Join(names, " and "), a.Name)
	}
	return ""
}

// about describes the subject with the given name, or all subjects if none has it.
func (s Statement) about(name string) string {
	var all []string
	for _, x := range s.Subject {
		text := fmt.Sprintf("%s with sha256 %s", x.Name, x.Digest["sha256"])
		if x.Name == name {
			return text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// read decodes a JSON value. It ignores unknown fields, as in-toto requires.
func read(data []byte, into any) error { return decode.OpenJSON(data, into) }
