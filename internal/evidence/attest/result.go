package attest

import (
	"encoding/json"
	"errors"
	"fmt"

	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
)

// resultType is the predicate type of a host's stored result of a passed cell.
const resultType = "urn:builder:result:v1"

// remembered is a result with the key of its cell. The key prevents using a signed
// result for another cell.
type remembered struct {
	Key    string          `json:"key"`
	Result json.RawMessage `json:"result"`
}

// SealResult signs a host's stored result of a cell, so that other writers to its store
// cannot forge one.
func (s Sealer) SealResult(key string, about []artifact.Artifact, result json.RawMessage) ([]byte, error) {
	return s.sign(about, resultType, remembered{key, result})
}

// OpenResult verifies and returns the signed result of the cell with the given key.
func OpenResult(data []byte, key string, trust signing.Trust) (json.RawMessage, error) {
	signed, err := trust.Open(data)
	if err != nil {
		return nil, err
	}
	r, err := resultIn(signed.Statement)
	if err == nil && r.Key != key {
		err = fmt.Errorf("it belongs to another cell, with the key %s", r.Key)
	}
	return r.Result, err
}

// PeekResult returns a result without verifying its signature. Use it only to list
// files.
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
		return data, nil // unsigned
	}
	r, err := resultIn(bundle.Envelope.Payload)
	return r.Result, err
}

func resultIn(statement []byte) (r remembered, err error) {
	var s Statement
	if err := read(statement, &s); err != nil {
		return r, fmt.Errorf("reading its statement: %w", err)
	}
	if s.Type != statementType || s.PredicateType != resultType {
		return r, errors.New("its statement is not about a result")
	}
	return r, read(s.Predicate, &r)
}
