// Package attest binds verdicts to the bytes that they speak of: a file beside
// the artifact whose subject is the sha256 of the artifact.
//
// Device gates run on another host and another day than the build, and what they
// found has to travel with the artifact and with no other. A [Statement] is not
// signed: whoever can write the artifact can write it too. A signature belongs
// around the bytes that [Statement.Encode] returns, which are the same for the
// same content.
package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"builder/internal/artifact"
	"builder/internal/gate"
	"builder/internal/gpu"
)

// Schema is the number of the format of statements.
const Schema = 1

// A Statement is what gates found about one artifact.
type Statement struct {
	Schema   int            `json:"schema"`
	Subject  Subject        `json:"subject"`
	Builder  string         `json:"builder"` // version of the tool that asked last
	Host     *gpu.Host      `json:"host,omitempty"`
	Verdicts []gate.Verdict `json:"verdicts"`
}

// A Subject is the bytes that a statement speaks of. The name is for people.
type Subject struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Path returns where the statement about the artifact at path lies.
func Path(path string) string { return path + ".verdicts.json" }

// A Mismatch is a statement about other bytes than those beside it.
type Mismatch struct {
	Path, Stated, Found string // the file, the digest in it, the digest of the artifact
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%s speaks of other bytes: its subject has sha256 %s, the file beside it has %s", m.Path, m.Stated, m.Found)
}

// maxStatement bounds what is read.
const maxStatement = 16 << 20

// Read reads the statement about an artifact. Where there is none the error is
// [fs.ErrNotExist]; one about other bytes is a [Mismatch].
func Read(a artifact.Artifact) (Statement, error) {
	path := Path(a.Path)
	f, err := os.Open(path)
	if err != nil {
		return Statement{}, err
	}
	defer f.Close()
	s, err := decode(f)
	if err != nil {
		return Statement{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if s.Subject.SHA256 != a.SHA256 {
		return Statement{}, &Mismatch{path, s.Subject.SHA256, a.SHA256}
	}
	return s, nil
}

func decode(r io.Reader) (Statement, error) {
	var s Statement
	dec := json.NewDecoder(io.LimitReader(r, maxStatement))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Statement{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Statement{}, errors.New("there is more than one JSON value")
	}
	if s.Schema != Schema {
		return Statement{}, fmt.Errorf("schema %d, this builder reads %d", s.Schema, Schema)
	}
	seen := map[string]bool{}
	for _, v := range s.Verdicts {
		if v.Gate == "" || seen[v.Gate] {
			return Statement{}, fmt.Errorf("gate %q is there twice, or has no name", v.Gate)
		}
		seen[v.Gate] = true
	}
	return s, nil
}

// Encode returns the statement as its file holds it.
func (s Statement) Encode() ([]byte, error) {
	s.Schema = Schema
	if s.Verdicts == nil {
		s.Verdicts = []gate.Verdict{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return b.Bytes(), err
}

// Write puts the statement beside the artifact, as a whole or not at all.
func Write(a artifact.Artifact, s Statement) error {
	s.Subject = Subject{a.Name, a.SHA256}
	data, err := s.Encode()
	if err != nil {
		return err
	}
	path := Path(a.Path)
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(tmp.Name(), path)
}

// Merge returns the verdicts of both. The newer answer of a gate replaces the
// older, except that a gate that could not look takes nothing back that was
// measured: these are the same bytes. Neither is changed.
func Merge(older, newer []gate.Verdict) []gate.Verdict {
	measured := map[string]gate.Verdict{}
	for _, v := range older {
		if v.Status != gate.NotMeasured {
			measured[v.Gate] = v
		}
	}
	answered := map[string]bool{}
	var merged []gate.Verdict
	for _, v := range newer {
		if before, ok := measured[v.Gate]; ok && v.Status == gate.NotMeasured {
			v = before
		}
		answered[v.Gate] = true
		merged = append(merged, v)
	}
	return append(merged, Others(older, answered)...)
}

// Others returns the verdicts of gates that are not among those answered.
func Others(verdicts []gate.Verdict, answered map[string]bool) []gate.Verdict {
	var others []gate.Verdict
	for _, v := range verdicts {
		if !answered[v.Gate] {
			others = append(others, v)
		}
	}
	return others
}
