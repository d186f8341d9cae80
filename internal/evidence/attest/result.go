package attest

import (
	"encoding/json"
	"errors"
	"fmt"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
)

// resultType is the predicate of what a host remembers of a cell that passed.
const resultType = "urn:builder:result:v1"

// remembered is a result and the key of the cell that it is of: a signed result is
// none of another cell.
type remembered struct {
	Key    string          `json:"key"`
	Result json.RawMessage `json:"result"`
}

// SealResult signs what a host remembers of a cell, so that who else writes to its
// store makes it believe nothing.
func (s Sealer) SealResult(key string, about []artifact.Artifact, result json.RawMessage) ([]byte, error) {
	statement, err := newStatement(about, resultType, remembered{key, result})
	if err != nil {
		return nil, err
	}
	data, err := encode(statement)
	if err != nil {
		return nil, err
	}
	return signing.Sign(s.Key, data)
}

// OpenResult returns what was signed about the cell of a key.
func OpenResult(data []byte, key string, trust signing.Trust) (json.RawMessage, error) {
	signed, err := trust.Open(data)
	if err != nil {
		return nil, err
	}
	r, err := resultIn(signed.Statement)
	if err == nil && r.Key != key {
		err = fmt.Errorf("it is of another cell, with the key %s", r.Key)
	}
	return r.Result, err
}

// PeekResult returns what a signed result says, whoever signed it: to list files by
// it, and to believe nothing of it.
func PeekResult(data []byte) (json.RawMessage, error) {
	var bundle struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		return nil, err
	}
	if bundle.Envelope.Payload == nil {
		return data, nil // it is not signed
	}
	r, err := resultIn(bundle.Envelope.Payload)
	return r.Result, err
}

func resultIn(statement []byte) (r remembered, err error) {
	var s Statement
	if err := decode(statement, &s); err != nil {
		return r, fmt.Errorf("reading its statement: %w", err)
	}
	if s.Type != statementType || s.PredicateType != resultType {
		return r, errors.New("it says nothing about a result")
	}
	return r, decode(s.Predicate, &r)
}
